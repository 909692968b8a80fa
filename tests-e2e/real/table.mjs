// Tables in Markdown, and the middle of some figures.

export function table(head, rows) {
    const lines = [head, head.map(() => "---"), ...rows];
    return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

export function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
