#!/usr/bin/env node
// The bin: finds the verb, runs it, and turns what it throws into one clear message and an exit code.
import { AuthError } from '../client/errors.ts'
import { printableLines } from '../client/printable.ts'
import { isLoading } from '../core/config/while-loading.ts'
import { describeThrown, isError } from '../core/http/describe-thrown.ts'
import { errorText, StartError } from '../core/http/errors.ts'
import { nearest } from '../core/mcp/nearest.ts'
import { readArguments, usageError } from './arguments.ts'
import { inFlags } from './client/flag-words.ts'
import { knownSecrets } from './known-secrets.ts'
import { describeVerb, listVerbs } from './usage.ts'
import { CONFIG_OPTION, defineVerb, ENV_FILE_OPTION, LOG_OPTIONS, type Verb } from './verb.ts'
import { version } from './version.ts'

const startVerb = defineVerb({
  summary: 'serve the config until SIGTERM or SIGINT; SIGHUP reads it anew',
  options: {
    ...CONFIG_OPTION,
    ...ENV_FILE_OPTION,
    ...LOG_OPTIONS,
    workers: {
      type: 'string',
      value: '<n>',
      help: 'processes that share the port, or auto for one per core; default: this one alone',
    },
    role: {
      type: 'string',
      value: '<role>',
      help: 'worker runs tasks that others keep, front keeps them alone, both does both; default: as plugins.tasks says',
    },
  },
  async run(values) {
    const { start } = await import('./start.ts')
    await start(values)
  },
})

/** Each is loaded when it is asked for: what serves and what calls have little in common. */
const GROUPS: ReadonlyArray<readonly [title: string, Readonly<Record<string, () => Promise<Verb>>>]> = [
  [
    'Begin',
    {
      init: async () => (await import('./init.ts')).initVerb,
      add: async () => (await import('./add.ts')).addVerb,
    },
  ],
  [
    'Serve',
    {
      start: async () => startVerb,
      dev: async () => (await import('./dev.ts')).devVerb,
      stdio: async () => (await import('./stdio.ts')).stdioVerb,
      check: async () => (await import('./check.ts')).checkVerb,
      explain: async () => (await import('./explain.ts')).explainVerb,
      schema: async () => (await import('./schema.ts')).schemaVerb,
      audit: async () => (await import('./audit.ts')).auditVerb,
    },
  ],
  [
    'Watch',
    {
      report: async () => (await import('./report.ts')).reportVerb,
      top: async () => (await import('./top.ts')).topVerb,
      tasks: async () => (await import('./tasks.ts')).tasksVerb,
    },
  ],
  [
    'Call',
    {
      list: async () => (await import('./client/list.ts')).listVerb,
      call: async () => (await import('./client/call.ts')).callVerb,
      connect: async () => (await import('./connect.ts')).connectVerb,
      login: async () => (await import('./client/login.ts')).loginVerb,
      logout: async () => (await import('./client/logout.ts')).logoutVerb,
      status: async () => (await import('./client/status.ts')).statusVerb,
      token: async () => (await import('./client/token.ts')).tokenVerb,
      proxy: async () => (await import('./proxy.ts')).proxyVerb,
      doctor: async () => (await import('./doctor.ts')).doctorVerb,
    },
  ],
]

const VERBS: ReadonlyMap<string, () => Promise<Verb>> = new Map(GROUPS.flatMap(([, verbs]) => Object.entries(verbs)))

async function describeAll(): Promise<string> {
  const groups = GROUPS.map(async ([title, verbs]) => {
    const loaded = Object.entries(verbs).map(async ([name, load]) => [name, await load()] as const)
    return { title, verbs: await Promise.all(loaded) }
  })
  return listVerbs(await Promise.all(groups))
}

const isFlag = (argument: string | undefined) => argument?.startsWith('-') ?? false

async function run(argv: readonly string[]): Promise<void> {
  // Options may come before their verb.
  const at = isFlag(argv[0]) ? argv.findIndex(argument => VERBS.has(argument)) : 0
  const name = argv[at]
  if (name === undefined) {
    const [flag] = argv
    if (flag === '-v' || flag === '--version') return void console.log(version)
    if (flag === undefined || flag === '-h' || flag === '--help') return void console.log(await describeAll())
    throw usageError(`Unknown option '${flag}'; a verb comes first`, await describeAll())
  }
  const load = VERBS.get(name)
  if (!load) {
    const near = nearest(name, VERBS.keys())
    const hint = near === undefined ? '' : `; did you mean "${near}"?`
    throw usageError(`there is no verb "${name}"${hint}`, await describeAll())
  }
  const verb = await load()
  const { values, positionals } = readArguments(name, verb, [...argv.slice(0, at), ...argv.slice(at + 1)])
  if (values['help'] === true) return void console.log(describeVerb(name, verb))
  await verb.run(values, positionals)
}

/** 2: what was asked for must change; 1: it failed. Undefined for what nobody expected. */
function exitCodeOf(error: unknown): StartError['exitCode'] | undefined {
  if (error instanceof StartError) return error.exitCode
  if (AuthError.is(error)) return error.code === 'invalid_options' ? 2 : 1
  return undefined
}

/** An error and what caused it. Not what else they carry: a URL that is none is kept whole, with its password. */
function stacksOf(error: unknown, most = MAX_CAUSES): string {
  const { message, stack = message } = describeThrown(error, true)
  const cause = isError(error) && most > 0 ? error.cause : undefined
  return cause === undefined ? stack : `${stack}\ncaused by: ${stacksOf(cause, most - 1)}`
}

/** An error may be its own cause. */
const MAX_CAUSES = 8

function report(error: unknown, verbose: boolean): void {
  const exitCode = exitCodeOf(error)
  const said = errorText(error)
  const text = AuthError.is(error) ? inFlags(said) : said
  console.error(printableLines(`mcp-host: ${knownSecrets.scrub(text)}`))
  if (verbose) console.error(printableLines(knownSecrets.scrub(stacksOf(error))))
  else if (exitCode === undefined) console.error('This is unexpected; run it again with --verbose for the stack.')
  // What a plugin opened before the start failed must not keep the process.
  process.exit(exitCode ?? 1)
}

const NEVER_SETTLES =
  'it waits for a promise that never settles, and nothing else is left to do: look for an `await` at the top of the config, ' +
  'or of a module that it imports'

let over = false
// Node would end with exit code 0.
process.on('beforeExit', () => {
  if (!over && !isLoading()) report(new StartError(NEVER_SETTLES, { exitCode: 1 }), false)
})
run(process.argv.slice(2))
  .catch(error => report(error, process.argv.includes('--verbose')))
  .finally(() => {
    over = true
  })
