// `mcp-host/testing`: for whoever tests tools, a config or a plugin (docs/testing.md), and the contracts of the store slots,
// for whoever writes a store: each is a list of named checks that any test runner runs; docs/plugins.md, "Writing a store".
export type { TestUser, UnderTest } from './kernel/define-plugin.ts'
export type { Answer, Answers, Ask, AskResult } from './testing/answers.ts'
export { changeBusContract } from './testing/change-bus-contract.ts'
export type { ToldChange } from './testing/changes.ts'
export type { Check, ContractSettings, Opened } from './testing/contract.ts'
export { eventStoreContract } from './testing/event-store-contract.ts'
export { peersContract } from './testing/peers-contract.ts'
export type { Happened, RunSettings } from './testing/run-alone.ts'
export { sessionStoreContract } from './testing/session-store-contract.ts'
export { type PromptOutcome, testPrompt } from './testing/test-prompt.ts'
export { type ResourceOutcome, testResource } from './testing/test-resource.ts'
export { type ToolOutcome, testTool } from './testing/test-tool.ts'
