// Tasks with a memory of thirty people.

import { call, run, script } from "../play.mjs";

const graph = () => call("memory__read_graph", {});
const isRed = ({ observations }) => observations.includes("works in the red team");

export const MEMORY = [
    {
        name: "people who know nobody",
        expected: (world) => alone(world.graph()),
        *direct() {
            return alone(JSON.parse((yield [graph()])[0]));
        },
        code: script`
            const { entities, relations } = await tools.memory.read_graph({});
            const from = new Set(relations.map((relation) => relation.from));
            return entities.map((entity) => entity.name).filter((name) => !from.has(name)).sort();
        `,
    },
    {
        name: "an observation for each of a team",
        expected: (world) => world.graph().entities.filter(isRed).length,
        effect: (world) => world.graph().entities.every((entity) => entity.observations.includes("moves to floor 3") === isRed(entity)),
        *direct() {
            const { entities } = JSON.parse((yield [call("memory__search_nodes", { query: "red team" })])[0]);
            yield [call("memory__add_observations", { observations: entities.map(({ name }) => ({ entityName: name, contents: ["moves to floor 3"] })) })];
            return entities.length;
        },
        code: script`
            const { entities } = await tools.memory.search_nodes({ query: "red team" });
            await tools.memory.add_observations({
              observations: entities.map((entity) => ({ entityName: entity.name, contents: ["moves to floor 3"] })),
            });
            return entities.length;
        `,
    },
    {
        name: "delete the relations of one kind",
        expected: (world) => world.graph().relations.filter(({ relationType }) => relationType === "advises").length,
        effect: (world) => world.graph().relations.length > 0 && world.graph().relations.every(({ relationType }) => relationType === "knows"),
        *direct() {
            const found = JSON.parse((yield [graph()])[0]).relations.filter(({ relationType }) => relationType === "advises");
            yield [call("memory__delete_relations", { relations: found.map(({ from, to, relationType }) => ({ from, to, relationType })) })];
            return found.length;
        },
        code: script`
            const { relations } = await tools.memory.read_graph({});
            const found = relations.filter((relation) => relation.relationType === "advises");
            await tools.memory.delete_relations({ relations: found });
            return found.length;
        `,
    },
    {
        name: "who knows whom, from one person to the end",
        expected: (world) => chain(world.graph()),
        *direct() {
            return chain(JSON.parse((yield [graph()])[0]));
        },
        code: script`
            const { relations } = await tools.memory.read_graph({});
            const next = new Map(relations.map((relation) => [relation.from, relation.to]));
            const chain = ["Ada"];
            while (next.has(chain.at(-1)) && !chain.includes(next.get(chain.at(-1)))) chain.push(next.get(chain.at(-1)));
            return chain;
        `,
    },
    {
        name: "one person of the memory",
        expected: (world) => world.graph().entities.find(({ name }) => name === "Cleo").observations[1],
        *direct() {
            return JSON.parse((yield [call("memory__open_nodes", { names: ["Cleo"] })])[0]).entities[0].observations[1];
        },
        *code() {
            return JSON.parse((yield [run('return await tools.memory.open_nodes({ names: ["Cleo"] });')])[0]).entities[0].observations[1];
        },
    },
];

function alone({ entities, relations }) {
    return entities.map(({ name }) => name).filter((name) => !relations.some(({ from }) => from === name)).sort();
}

function chain({ relations }) {
    const found = ["Ada"];
    for (;;) {
        const next = relations.find(({ from }) => from === found.at(-1))?.to;
        if (!next || found.includes(next)) return found;
        found.push(next);
    }
}
