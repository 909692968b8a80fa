// The lengths of names that hosts tell apart: around 64 and 128, with and without their prefix.

export const EVERY_LENGTH = [...range(40, 66), ...range(108, 128)];

export function range(first, last) {
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
