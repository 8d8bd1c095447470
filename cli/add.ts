// `mcp-host add`: one more tool, resource, prompt or plugin in a project, with its test, as the project writes its own.
import { join, relative } from 'node:path'
import { printable } from '../client/text.ts'
import { StartError } from '../core/http/errors.ts'
import { installLine } from '../core/http/optional-packages.ts'
import { nearest } from '../core/mcp/nearest.ts'
import { addedFiles, isKind, KINDS, type Kind } from './add/added-files.ts'
import { findProject, isServed } from './add/project.ts'
import type { CommandContext } from './context.ts'
import { assertFree, writeNew } from './init/write-new.ts'
import { CONFIG_OPTION, defineVerb } from './verb.ts'

/** MCP 2025-11-25, "Tool Names"; the same for the others. */
const NAME = /^[A-Za-z0-9_.-]{1,128}$/

function readKind(kind: string): Kind {
  if (isKind(kind)) return kind
  const near = nearest(kind, KINDS)
  const hint = near === undefined ? '' : `; did you mean "${near}"?`
  throw new StartError(`"${printable(kind)}" cannot be added: ${KINDS.join(', ')}${hint}`, { exitCode: 2 })
}

function checkName(kind: Kind, name: string): void {
  if (NAME.test(name) && /[A-Za-z0-9]/.test(name)) return
  const fits = 'a name has 1 to 128 letters A to Z and a to z, digits, _, - and .'
  throw new StartError(`"${printable(name, 150)}" is no name of a ${kind} that all clients take: ${fits}`, {
    exitCode: 2,
  })
}

/** Refuses a name under which another plugin is known. */
async function checkPluginName(name: string): Promise<void> {
  const { builtInPlugins } = await import('../plugins/index.ts')
  if (!Object.hasOwn(builtInPlugins, name)) return
  throw new StartError(`"${name}" is a plugin of mcp-host's own: choose another name`, { exitCode: 2 })
}

/** What of mcp-host's optional packages the test of such a file needs: that of a plugin calls a host. */
const neededBy = (kind: Kind): string[] => (kind === 'plugin' ? ['@modelcontextprotocol/client'] : [])

async function add(
  { config }: { config?: string },
  [kindText = '', name = '']: readonly string[],
  { cwd, print }: CommandContext,
): Promise<void> {
  const kind = readKind(kindText)
  checkName(kind, name)
  if (kind === 'plugin') await checkPluginName(name)
  const project = await findProject(cwd, config)
  const { files, main, use } = addedFiles(kind, name, project)
  assertFree(project.folder, files.keys(), `Choose another name: mcp-host add ${kind} NAME`)
  writeNew(project.folder, files)
  const shown = (path: string) => printable(relative(cwd, join(project.folder, path)))
  print([...files.keys()].map(path => `made ${shown(path)}`).join('\n'))
  const served = kind !== 'plugin' && (await isServed(project, main))
  print(served ? `${project.configName} serves it already.` : use)
  const missing = neededBy(kind).filter(name => !project.packages.has(name))
  if (missing.length > 0) print(`Its test needs what is not in package.json yet. Run:\n  ${installLine(missing, '-D')}`)
}

export const addVerb = defineVerb({
  summary: 'add a tool, resource, prompt or plugin to a project, with its test',
  positionals: ['tool|resource|prompt|plugin', 'NAME'],
  options: CONFIG_OPTION,
  notes: 'Nothing that is there is ever written over.',
  run: add,
})
