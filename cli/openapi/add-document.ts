// `mcp-host add openapi`: adds a document and a route for its toolset to the config.
import { dirname, posix, relative, resolve, sep } from 'node:path'
import { printable } from '../../client/text.ts'
import type { CommandContext } from '../context.ts'
import { addToConfig, assertFree, freeRoute, loadOrCreateConfig } from '../edit-config.ts'
import { readSurvey } from './read-survey.ts'

/** Derives a toolset name: `orders` for `apis/orders.openapi.yaml`. */
function nameOf(document: string): string {
  const [last = ''] = document.split(/[\\/]/).slice(-1)
  const name = last
    .replace(/(?:[.-](?:openapi|swagger))?\.(?:json|ya?ml)(?:[?#].*)?$/i, '')
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
  return name.replace(/^-+|-+$/g, '') || 'api'
}

export async function addDocument(
  { config }: { config?: string | undefined },
  given: string,
  context: CommandContext,
): Promise<void> {
  const { cwd, print } = context
  const survey = await readSurvey(given, { methods: 'get' }, cwd)
  const loaded = await loadOrCreateConfig({ config }, context)
  const file = resolve(cwd, loaded.file)
  const isUrl = /^https?:/.test(given)
  const path = relative(dirname(file), resolve(cwd, given)).replaceAll(sep, posix.sep)
  const document = isUrl ? given : path.startsWith('.') ? path : `./${path}`
  const name = nameOf(given)
  assertFree(loaded.config, name, 'rename the file, or edit the config')
  const route = freeRoute(loaded.config, name, 'openapi')
  await addToConfig(loaded, [{ plugin: 'openapi', key: 'documents', name, value: { document }, route }], context)
  const { tools, operations, securitySchemes } = survey
  print(`${tools.length} of ${operations} operations become tools. Default: GET only; \`methods\` adds others.`)
  const schemes = Object.keys(securitySchemes)
  if (schemes.length > 0) {
    print(`Set \`credentials\` to add operations with: ${schemes.map(one => printable(one)).join(', ')}`)
  }
}
