// `mcp-host/testing`: tests of tools, configs and plugins (docs/testing.md), and contract checks for stores (docs/plugins.md).
export type { TestUser } from './access/claims.ts'
export type { Answer, Answers, Ask, AskResult } from './testing/answers.ts'
export { changeBusContract } from './testing/change-bus-contract.ts'
export type { Check, ContractSettings, Opened } from './testing/contract.ts'
export { eventStoreContract } from './testing/event-store-contract.ts'
export { grantStoreContract } from './testing/grant-store-contract.ts'
export type { LoggedLine, ToldChange } from './testing/kept-log.ts'
export { peersContract } from './testing/peers-contract.ts'
export type { Happened, RunSettings } from './testing/run-alone.ts'
export { sessionStoreContract } from './testing/session-store-contract.ts'
export { taskStoreContract } from './testing/task-store-contract.ts'
export type { ClientSettings, Listed, Notified, TestClient } from './testing/test-client.ts'
export {
  type PromptOutcome,
  type ResourceOutcome,
  type ToolOutcome,
  testPrompt,
  testResource,
  testTool,
} from './testing/test-definitions.ts'
export { type TestHost, type TestHostSettings, type TokenSettings, testHost } from './testing/test-host.ts'
export { type TestPluginSettings, testPlugin } from './testing/test-plugin.ts'
