// `mcp-host add openapi`: adds a document and a route for its toolset to the config.
import { dirname, posix, relative, resolve, sep } from 'node:path'
import { printable } from '../../client/text.ts'
import type { Survey } from '../../plugins/openapi/survey.ts'
import type { CommandContext } from '../context.ts'
import { addToConfig, assertFree, freeRoute, loadOrCreateConfig, printNextStep } from '../edit-config.ts'
import { readSurvey } from './read-survey.ts'

/** Derives a toolset name: `orders` for `apis/orders.openapi.yaml`. */
function nameOf(document: string): string {
  const [last = ''] = document.split(/[\\/]/).slice(-1)
  const name = last
    .replace(/(?:[.-](?:openapi|swagger))?\.(?:json|ya?ml)(?:[?#].*)?$/i, '')
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
  return name.replace(/^-+|-+$/g, '') || 'api'
}

function describeTools({ tools, operations, blocked }: Survey, at: string): string[] {
  const served = tools.filter(({ requires }) => requires === undefined).length
  const omitted = new Map<string, number>()
  for (const { requires } of tools) {
    if (requires !== undefined) omitted.set(requires, (omitted.get(requires) ?? 0) + 1)
  }
  return [
    `${served} of ${operations} operations become tools. Default: GET only; \`methods\` adds others.`,
    ...[...omitted].map(
      ([schemes, count]) => `Left out: ${count}, without credentials. Set them in ${at}.credentials: ${schemes}`,
    ),
    ...blocked.map(({ server, reason }) => `All requests to ${server} are blocked: ${reason} (${at}.allowHosts)`),
  ]
}

export async function addDocument(
  { config }: { config?: string | undefined },
  given: string,
  context: CommandContext,
): Promise<void> {
  const { cwd, print } = context
  const survey = await readSurvey(given, {}, cwd)
  const loaded = await loadOrCreateConfig({ config }, context)
  const file = resolve(cwd, loaded.file)
  const isUrl = /^https?:/.test(given)
  const path = relative(dirname(file), resolve(cwd, given)).replaceAll(sep, posix.sep)
  const document = isUrl ? given : path.startsWith('.') ? path : `./${path}`
  const name = nameOf(given)
  assertFree(loaded.config, name, 'rename the file, or edit the config')
  const route = freeRoute(loaded.config, name, 'openapi')
  await addToConfig(loaded, [{ plugin: 'openapi', key: 'documents', name, value: { document }, route }], context)
  for (const line of describeTools(survey, `plugins.openapi.documents.${name}`)) print(printable(line))
  printNextStep(context, config)
}
