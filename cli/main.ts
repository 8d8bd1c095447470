// Runs a command and converts its errors to one message and an exit code.

import { Console } from 'node:console'
import { AuthError } from '../client/errors.ts'
import { isLoading } from '../core/config/while-loading.ts'
import { describeThrown, isError } from '../core/http/describe-thrown.ts'
import { errorText, StartError } from '../core/http/errors.ts'
import { withFlags } from './client/flag-text.ts'
import {
  type Command,
  defineCommand,
  describeCommand,
  listCommands,
  readArguments,
  START_OPTIONS,
  usageError,
} from './command.ts'
import { type CommandContext, type CommandEnvironment, createContext, failureText } from './context.ts'
import { render, withFrames, wrapLines } from './render.ts'
import { nearestHint } from './text.ts'
import { version } from './version.ts'

/**
 * Redirects stdout writes other than by `context.stdout` to stderr. Child processes with `stdio: 'inherit'` still use
 * stdout. Does nothing if `context.stdout` is not the process's own.
 */
function redirectStdout({ stdout }: Pick<CommandContext, 'stdout'>): void {
  if (stdout !== process.stdout) return
  const { stderr } = process
  Object.defineProperty(process, 'stdout', { configurable: true, enumerable: true, get: () => stderr })
  // Modules that have already imported `console` use this object.
  Object.assign(console, new Console({ stdout: stderr, stderr }))
}

const startCommand = defineCommand({
  summary: 'Serve the config until SIGTERM or SIGINT; SIGHUP reloads it',
  options: START_OPTIONS,
  example: '--config mcp.config.ts --log-format json',
  async run(values, _positionals, context) {
    const { start } = await import('./start.ts')
    return start(values, context)
  },
})

const GROUPS: Readonly<Record<string, Readonly<Record<string, () => Promise<Command>>>>> = {
  Create: {
    init: async () => (await import('./init.ts')).initCommand,
    add: async () => (await import('./add.ts')).addCommand,
    import: async () => (await import('./import.ts')).importCommand,
  },
  Serve: {
    start: async () => startCommand,
    dev: async () => (await import('./dev.ts')).devCommand,
    stdio: async () => (await import('./stdio.ts')).stdioCommand,
  },
  Check: {
    openapi: async () => (await import('./openapi.ts')).openapiCommand,
    check: async () => (await import('./check.ts')).checkCommand,
    explain: async () => (await import('./explain.ts')).explainCommand,
    schema: async () => (await import('./schema.ts')).schemaCommand,
  },
  Review: {
    lock: async () => (await import('./lock.ts')).lockCommand,
    accept: async () => (await import('./accept.ts')).acceptCommand,
    diff: async () => (await import('./diff.ts')).diffCommand,
    audit: async () => (await import('./audit.ts')).auditCommand,
  },
  Monitor: {
    report: async () => (await import('./report.ts')).reportCommand,
    tasks: async () => (await import('./tasks.ts')).tasksCommand,
  },
  Connect: {
    list: async () => (await import('./client/list.ts')).listCommand,
    call: async () => (await import('./client/call.ts')).callCommand,
    connect: async () => (await import('./connect.ts')).connectCommand,
    login: async () => (await import('./client/login.ts')).loginCommand,
    logout: async () => (await import('./client/tokens.ts')).logoutCommand,
    status: async () => (await import('./client/tokens.ts')).statusCommand,
    token: async () => (await import('./client/tokens.ts')).tokenCommand,
    proxy: async () => (await import('./proxy.ts')).proxyCommand,
    doctor: async () => (await import('./doctor.ts')).doctorCommand,
  },
  Shell: {
    completion: async () => (await import('./completion.ts')).completionCommand(() => COMMANDS),
  },
}

const SHARES_STDOUT: ReadonlySet<string> = new Set(['init', 'add', 'start', 'dev'])

export const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map(
  Object.values(GROUPS).flatMap(commands => Object.entries(commands)),
)

async function describeCommands(width: number): Promise<string> {
  const groups = Object.entries(GROUPS).map(async ([title, commands]) => {
    const loaded = Object.entries(commands).map(async ([name, load]) => [name, await load()] as const)
    return { title, commands: await Promise.all(loaded) }
  })
  return listCommands(await Promise.all(groups), width)
}

const HELP_WIDTH = 80
const SEE_HELP = 'Run mcp-host --help for a list of commands.'

const HANDLES_STDOUT: ReadonlySet<string> = new Set(['start', 'dev', 'stdio', 'proxy'])

/** Returns the exit code. `release` leaves stdout errors to the command. */
async function runCommand(argv: readonly string[], context: CommandContext, release: () => void): Promise<number> {
  const [firstArgument, topic = ''] = argv
  if (firstArgument === 'help' && /^\w+$/.test(topic) && !COMMANDS.has(topic)) {
    const { explainCode, explainKind } = await import('./explain-code.ts')
    const text = /^mh\d{4}$/i.test(topic) ? explainCode(topic.toUpperCase()) : explainKind(topic)
    if (text !== undefined) {
      context.show(text)
      return 0
    }
  }
  if (firstArgument === 'help') return runCommand([...argv.slice(1), '--help'], context, release)
  const at = firstArgument?.startsWith('-') ? argv.findIndex(argument => COMMANDS.has(argument)) : 0
  const name = argv[at]
  const width = context.stdout.columns || HELP_WIDTH
  const help = (text: string) => {
    context.print(text)
    return 0
  }
  if (name === undefined) {
    if (firstArgument === '-v' || firstArgument === '--version') return help(version)
    if (firstArgument === undefined || firstArgument === '-h' || firstArgument === '--help')
      return help(await describeCommands(width))
    throw usageError(`unknown option '${firstArgument}'; give a command first`, SEE_HELP)
  }
  const load = COMMANDS.get(name)
  if (!load) {
    throw usageError(`unknown command "${name}"${nearestHint(name, COMMANDS.keys())}`, SEE_HELP)
  }
  const command = await load()
  const { values, positionals } = readArguments(name, command, [...argv.slice(0, at), ...argv.slice(at + 1)])
  if (values['help'] === true) return help(describeCommand(name, command, width))
  if (!SHARES_STDOUT.has(name)) redirectStdout(context)
  if (HANDLES_STDOUT.has(name)) release()
  return (await command.run(values, positionals, context)) ?? 0
}

/** 2: the input must change; 1: the command failed; undefined: unexpected. */
function exitCodeOf(error: unknown): StartError['exitCode'] | undefined {
  if (error instanceof StartError) return error.exitCode
  if (AuthError.is(error)) return error.code === 'invalid_options' ? 2 : 1
  return undefined
}

/** Returns the stacks of an error and its causes. Other fields of an invalid URL's error contain its password. */
function readStacks(error: unknown, max = MAX_CAUSES): string {
  const { message, stack = message } = describeThrown(error, true)
  const cause = isError(error) && max > 0 ? error.cause : undefined
  return cause === undefined ? stack : `${stack}\ncaused by: ${readStacks(cause, max - 1)}`
}

/** Guards against cyclic causes. */
const MAX_CAUSES = 8

function report(error: unknown, verbose: boolean, { stderr, env, secrets, runnable }: CommandContext): number {
  const exitCode = exitCodeOf(error)
  const message = errorText(error)
  const text = withFrames(error, runnable(AuthError.is(error) ? withFlags(error) : message), stderr)
  const write = (line: string) => stderr.write(`${render(secrets.scrub(line), stderr, env)}\n`)
  write(wrapLines(failureText(error, text), (stderr.isTTY && stderr.columns) || undefined))
  if (verbose) write(readStacks(error))
  else if (exitCode === undefined) write('This is unexpected; run it again with --verbose for the stack.')
  return exitCode ?? 1
}

const NEVER_SETTLES =
  'a promise never settles: check each top-level `await` in the config and in the modules that it imports'

/** Runs `mcp-host ...argv` and returns its exit code. Never rejects. */
export function main(argv: readonly string[], environment: CommandEnvironment): Promise<number> {
  return new Promise(resolve => {
    const context = createContext(environment, end)
    const reportFailure = (error: unknown) => end(report(error, argv.includes('--verbose'), context))
    const onIdle = () => {
      // Without this, Node.js would end with exit code 0.
      if (!isLoading()) reportFailure(new StartError('MH3010', NEVER_SETTLES, { exitCode: 1 }))
    }
    const { stdout, stderr } = environment
    // The reader closed the pipe, such as `head`.
    const onStdoutError = (error: NodeJS.ErrnoException) => (error.code === 'EPIPE' ? end(0) : reportFailure(error))
    const onStderrError = () => undefined
    const release = () => void stdout.off('error', onStdoutError)
    function end(code: number) {
      context.process.off('beforeExit', onIdle)
      resolve(code)
    }
    context.process.on('beforeExit', onIdle)
    stdout.on('error', onStdoutError)
    stderr.on('error', onStderrError)
    runCommand(argv, context, release).then(end, reportFailure)
  })
}
