// Warnings about definitions that some clients or callers cannot use, at startup and when one is added at run time.

import { hasUriCharacters, normalTemplate, normalUri } from '../normal-uri.ts'
import { isDraft07 } from '../schema/ajv.ts'
import { subschemas } from '../schema/subschemas.ts'
import type { JsonSchema } from '../wire/protocol.ts'
import type { CatalogItem, ResourceItem, ToolItem } from './catalog-item.ts'

interface DefinitionWarning {
  readonly why: string
  readonly at: readonly string[]
}

/** 2025-11-25 server/tools "Tool Names". Clients can refuse all tools of a server with another name. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/
/** Limit of the Anthropic and OpenAI APIs. */
const API_NAME = /^[A-Za-z0-9_-]{1,64}$/
const APIS = 'Claude and OpenAI clients (Claude Code, Claude Desktop, Codex, ChatGPT)'

function refusalsOf({ key, wire }: ToolItem): DefinitionWarning[] {
  const { inputSchema = {}, outputSchema = {} } = wire as Partial<Record<'inputSchema' | 'outputSchema', JsonSchema>>
  const refusals: DefinitionWarning[] = []
  const refuse = (why: string, ...at: string[]) => refusals.push({ why, at })
  if (!API_NAME.test(key)) {
    const who = TOOL_NAME.test(key) ? `${APIS} change or refuse` : 'clients may refuse'
    refuse(`${who} its name; use 1 to 64 letters, digits, "_" and "-"`, 'name')
  }
  const root = ['anyOf', 'oneOf', 'allOf'].find(keyword => keyword in inputSchema)
  if (root !== undefined) {
    refuse(`${APIS} refuse \`${root}\` at the root of its input; move it into a property`, 'input', root)
  }
  const open = [...subschemas(inputSchema)].find(
    ({ schema: { type, items, prefixItems } }) => [type].flat().includes('array') && !items && !prefixItems,
  )
  if (open) {
    const why = `OpenAI clients, VS Code and Gemini refuse the array "${open.path.at(-1)}" without \`items\`; add them`
    refuse(why, 'input', ...open.path)
  }
  for (const [role, schema] of Object.entries({ input: inputSchema, output: outputSchema })) {
    if (isDraft07(schema)) {
      refuse(`Claude clients refuse the draft-07 schema of its ${role}; write it in draft 2020-12`, role)
    }
  }
  return refusals
}

function uriWarningsOf({ definition }: ResourceItem): DefinitionWarning[] {
  const { uri, uriTemplate = '' } = definition
  if (hasUriCharacters(uri ?? uriTemplate.replace(/\{[^{}]*\}/g, ''))) return []
  const [what, normal] = uri === undefined ? ['uriTemplate', normalTemplate(uriTemplate)] : ['uri', normalUri(uri)]
  return [{ why: `its ${what} has characters invalid in URIs; write ${JSON.stringify(normal)}`, at: [what] }]
}

export function warningsOf(item: CatalogItem): DefinitionWarning[] {
  if (item.kind === 'resources') return uriWarningsOf(item)
  if (item.kind !== 'tools') return []
  const refusals = refusalsOf(item)
  return refusals.slice(0, 1).map(({ at }) => ({ why: refusals.map(({ why }) => why).join('; '), at }))
}
