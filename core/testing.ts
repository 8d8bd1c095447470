// `mcp-host/testing`: tests of tools, configs and plugins (docs/testing.md), and contract checks for stores (docs/plugins.md).
export type { TestUser } from './access/claims.ts'
export type { Answers } from './testing/answers.ts'
export type { RunSettings } from './testing/run-definition.ts'
export { storeContract } from './testing/store-contract.ts'
export type { ClientSettings, TestClient } from './testing/test-client.ts'
export { type ToolOutcome, testPrompt, testResource, testTool } from './testing/test-definitions.ts'
export { type TestHost, type TestHostSettings, testHost, testPlugin } from './testing/test-host.ts'
