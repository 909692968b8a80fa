// The suite's tools that need something from the client first. Written once: to a legacy client the SDK
// turns what is required into requests of its own.

import { form, said, sdk, z } from "./sdk.mjs";

const string = { type: "string" };
const sample = (words, maxTokens) =>
    sdk.inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: words } }], maxTokens });

export function addAskingTools(tool, shared) {
    // Answers once everything that is asked for is there.
    const asking = (name, ask, answer, config) =>
        tool(
            name,
            async (...given) => {
                const context = given.at(-1);
                const inputRequests = ask(given[0], context);
                const views = {};
                for (const key of Object.keys(inputRequests)) {
                    views[key] = sdk.inputResponse(context.mcpReq.inputResponses, key);
                    if (views[key].kind === "missing") return required(inputRequests, config?.state);
                }
                return answer(views, context);
            },
            config?.tool,
        );
    const required = async (inputRequests, state) =>
        sdk.inputRequired({ inputRequests, ...(state && { requestState: await shared.codec.mint(state) }) });
    const takes = (name) => ({ tool: { inputSchema: z.object({ [name]: z.string() }) } });
    const outcome = ({ action, content }) => `action=${action}, content=${JSON.stringify(content ?? {})}`;

    asking(
        "test_sampling",
        ({ prompt }) => ({ answer: sample(prompt, 100) }),
        ({ answer }) => said(`LLM response: ${answer.result.content.text}`),
        takes("prompt"),
    );
    asking(
        "test_elicitation",
        ({ message }) => ({ form: form(message, { username: string, email: string }) }),
        ({ form }) => said(`User response: ${outcome(form)}`),
        takes("message"),
    );
    asking(
        "test_elicitation_sep1034_defaults",
        () => ({ form: sdk.inputRequired.elicit({ message: "Please review", requestedSchema: defaults() }) }),
        ({ form }) => said(`Elicitation completed: ${outcome(form)}`),
    );
    asking(
        "test_elicitation_sep1330_enums",
        () => ({ form: sdk.inputRequired.elicit({ message: "Please choose", requestedSchema: enums() }) }),
        ({ form }) => said(`Elicitation completed: ${outcome(form)}`),
    );

    const name = () => form("What is your name?", { name: string });
    asking(
        "test_input_required_result_elicitation",
        () => ({ user_name: name() }),
        ({ user_name: { content } }) => said(`Hello, ${content?.name}!`),
    );
    asking("test_streaming_elicitation", () => ({ user_name: name() }), () => said("Hello!"));
    asking(
        "test_input_required_result_sampling",
        () => ({ capital_question: sample("What is the capital of France?", 100) }),
        ({ capital_question: { result } }) => said(result.content.text),
    );
    asking(
        "test_input_required_result_list_roots",
        () => ({ client_roots: sdk.inputRequired.listRoots() }),
        ({ client_roots: { roots } }) => said(`Roots: ${roots.map((root) => root.uri).join(", ")}`),
    );
    const confirm = () => ({ confirm: form("Please confirm", { ok: { type: "boolean" } }) });
    const withState = { state: { asked: true } };
    // A wrong state never gets this far: the SDK refuses it.
    asking("test_input_required_result_request_state", confirm, (_, context) => said(stateWord(context)), withState);
    asking("test_input_required_result_tampered_state", confirm, (_, context) => said(stateWord(context)), withState);
    asking(
        "test_input_required_result_multiple_inputs",
        () => ({
            user_name: name(),
            greeting: sample("Generate a greeting", 50),
            client_roots: sdk.inputRequired.listRoots(),
        }),
        ({ user_name: { content } }) => said(`Everything is there, ${content?.name}.`),
        withState,
    );
    asking(
        "test_input_required_result_capabilities",
        (_, context) => {
            const can = context.mcpReq.envelope?.[sdk.CLIENT_CAPABILITIES_META_KEY] ?? {};
            return {
                ...(can.sampling && { capital_question: sample("What is the capital of France?", 100) }),
                ...(can.elicitation && { user_name: name() }),
            };
        },
        () => said("That was all that you can do."),
    );
    asking("test_missing_capability", () => ({ answer: sample("Anything", 10) }), () => said("sampled"));

    tool("test_input_required_result_multi_round", async (context) => {
        const { step1, ...later } = { step1: undefined, ...context.mcpReq.requestState() };
        const answered = (key) => sdk.acceptedContent(context.mcpReq.inputResponses, key);
        if (step1 === undefined && !answered("step1")) {
            return required({ step1: form("Step 1: What is your name?", { name: string }) }, { ...later, round: 1 });
        }
        const first = step1 ?? answered("step1");
        if (!answered("step2")) {
            const ask = form("Step 2: What is your favorite color?", { color: string });
            return required({ step2: ask }, { step1: first, round: 2 });
        }
        return said(`${first.name} likes ${answered("step2").color}.`);
    });
}

function stateWord(context) {
    return context.mcpReq.requestState() ? "state-ok" : "no state";
}

function defaults() {
    return {
        type: "object",
        properties: {
            name: { type: "string", default: "John Doe" },
            age: { type: "integer", default: 30 },
            score: { type: "number", default: 95.5 },
            status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
            verified: { type: "boolean", default: true },
        },
        required: [],
    };
}

function enums() {
    const plain = ["option1", "option2", "option3"];
    const titled = (word) => ["First", "Second", "Third"].map((nth, i) => ({ const: `value${i + 1}`, title: `${nth} ${word}` }));
    return {
        type: "object",
        properties: {
            untitledSingle: { type: "string", enum: plain },
            titledSingle: { type: "string", oneOf: titled("Option") },
            legacyEnum: {
                type: "string",
                enum: ["opt1", "opt2", "opt3"],
                enumNames: ["Option One", "Option Two", "Option Three"],
            },
            untitledMulti: { type: "array", items: { type: "string", enum: plain } },
            titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
        },
        required: [],
    };
}
