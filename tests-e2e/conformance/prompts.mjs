// The prompts that the suite asks for.

import { PNG, form, sdk, text, z } from "./sdk.mjs";

const user = (content) => ({ role: "user", content });

export function addPrompts(server, shared) {
    server.registerPrompt("test_simple_prompt", { description: "No arguments" }, () => ({
        messages: [user(text("This is a simple prompt for testing."))],
    }));
    const word = (description) => sdk.completable(z.string().describe(description), (start) => complete(start));
    server.registerPrompt(
        "test_prompt_with_arguments",
        {
            description: "Two arguments",
            argsSchema: z.object({ arg1: word("First test argument"), arg2: word("Second test argument") }),
        },
        ({ arg1, arg2 }) => ({ messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))] }),
    );
    server.registerPrompt(
        "test_prompt_with_embedded_resource",
        { description: "A resource and words", argsSchema: z.object({ resourceUri: z.string() }) },
        ({ resourceUri: uri }) => ({
            messages: [
                user({
                    type: "resource",
                    resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." },
                }),
                user(text("Please process the embedded resource above.")),
            ],
        }),
    );
    server.registerPrompt("test_prompt_with_image", { description: "An image and words" }, () => ({
        messages: [
            user({ type: "image", data: PNG, mimeType: "image/png" }),
            user(text("Please analyze the image above.")),
        ],
    }));
    server.registerPrompt("test_input_required_result_prompt", { description: "Asks first" }, (context) => {
        const given = sdk.acceptedContent(context.mcpReq.inputResponses, "user_context");
        if (given) return { messages: [user(text(`In the context of ${given.context}`))] };
        const ask = form("What context should the prompt use?", { context: { type: "string" } });
        return sdk.inputRequired({ inputRequests: { user_context: ask } });
    });
    for (let number = 1; number <= shared.extraPrompts; number += 1) {
        server.registerPrompt(`test_extra_prompt_${number}`, { description: "Was not there before" }, () => ({
            messages: [user(text("extra"))],
        }));
    }
}

function complete(start) {
    return ["paris", "park", "party", "testValue1"].filter((word) => word.startsWith(start));
}
