// The terminal process of `mcp-host dev`: watches the project and runs the server (server.ts) as a separate process.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { openBrowser } from '../../client/node/index.ts'
import { errorText } from '../../core/plugin.ts'
import type { CommandContext } from '../context.ts'
import { DEV_SERVER, type DevOrder, isDevReport, KEY_HELP } from './messages.ts'
import type { DevOptions } from './server.ts'
import { createTypeCheck } from './type-check.ts'
import { watchProject } from './watch.ts'

const CTRL_C = '\x03'
const CTRL_D = '\x04'

/**
 * Calls `pressed` for each key; Ctrl-C and Ctrl-D are `q`. Returns a function that restores the terminal. No-op without a
 * terminal.
 */
function readKeys(pressed: (key: string) => void): () => void {
  const { stdin } = process
  if (stdin.isTTY !== true) return () => undefined
  const read = (text: string) => {
    for (const key of text) pressed(key === CTRL_C || key === CTRL_D ? 'q' : key.toLowerCase())
  }
  stdin.setRawMode(true)
  stdin.setEncoding('utf8').on('data', read)
  return () => {
    stdin.off('data', read)
    stdin.setRawMode(false)
    stdin.pause()
  }
}

function findConfig(config: string | undefined, cwd: string): { readonly folder: string; readonly exists: boolean } {
  if (config !== undefined) return { folder: dirname(resolve(cwd, config)), exists: existsSync(resolve(cwd, config)) }
  for (let folder = cwd; ; folder = dirname(folder)) {
    const names = readdirSync(folder)
    if (names.some(name => name.startsWith('mcp.config.'))) return { folder, exists: true }
    if (names.includes('package.json') || dirname(folder) === folder) return { folder: cwd, exists: false }
  }
}

const say = (line: string) => console.log(line)
const STOP_TIMEOUT = 5_000

const hasKeys = () => process.stdin.isTTY === true

type Server = ReturnType<typeof startServer>

interface ServerEvents {
  files(files: readonly string[]): void
  serving(): void
  died(why: string): void
}

/** Starts this program again with the same arguments. `keep`: the development data folder of plugins. */
function startServer(dataFolder: string, { files, serving, died }: ServerEvents) {
  const [program = '', ...argv] = process.argv.slice(1)
  const child = spawn(process.execPath, [...process.execArgv, program, ...argv], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { MCP_HOST_DEV_FOLDER: dataFolder, ...process.env, [DEV_SERVER]: hasKeys() ? 'keys' : 'yes' },
  })
  let page: string | undefined
  let stopping = false
  const ended = new Promise<void>(resolve => {
    child.once('error', error => {
      died(errorText(error))
      resolve()
    })
    child.once('exit', (code, signal) => {
      if (!stopping) died(signal === null ? `exit code ${code}` : signal)
      resolve()
    })
  })
  child.on('message', message => {
    if (!isDevReport(message)) return
    if (message.mcpHostDev === 'files') return files(message.files)
    if (message.mcpHostDev === 'open') return void open(message.page)
    page = message.page
    serving()
  })
  const order = (what: DevOrder['mcpHostDev'], change?: string) => {
    if (child.connected)
      child.send({ mcpHostDev: what, ...(change !== undefined && { change }) } satisfies DevOrder, () => undefined)
  }
  return {
    get page(): string | undefined {
      return page
    },
    order,
    async stop(): Promise<void> {
      stopping = true
      order('stop')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT)
      await ended
      clearTimeout(timer)
    },
    kill: () => void child.kill('SIGKILL'),
  }
}

async function open(page: string) {
  say(`Opening ${page}`)
  await openBrowser(new URL(page)).catch((error: unknown) => say(errorText(error)))
}

export async function watchAndServe(options: DevOptions, context: CommandContext): Promise<void> {
  const { cwd } = context
  const { config, 'env-file': envFiles } = options
  // A closed reader must not end the process.
  process.stdout.on('error', () => undefined)
  const { folder, exists } = findConfig(config, cwd)
  const always = (envFiles ?? [join(folder, '.env')]).map(file => resolve(cwd, file))
  let known: readonly string[] = []
  let server: Server | undefined
  let restarting: Promise<void> | undefined
  let isBehind = false
  let pressed: 'o' | 'e' | undefined
  const types = createTypeCheck(folder, () => known, say)
  const isAtTerminal = hasKeys()

  /** Opens the console for `o` and the first URL for `e`, after the start if the server is not ready. */
  function openFor(key: 'o' | 'e') {
    pressed = undefined
    if (!server) say('Nothing is served yet.')
    else if (server.page === undefined) pressed = key
    else if (key === 'o') server.order('open')
    else void open(server.page)
  }

  function start() {
    server = startServer(join(folder, '.mcp-host'), {
      files(files) {
        known = files
        watch.know(files)
      },
      serving() {
        types.run()
        if (pressed !== undefined) openFor(pressed)
      },
      died(why) {
        server = pressed = undefined
        if (!exists && !isAtTerminal) process.exit(2)
        say(`Server stopped (${why}). It restarts after the next change${isAtTerminal ? ', or press r' : ''}.`)
      },
    })
  }

  function restart(): Promise<void> {
    restarting ??= (async () => {
      const isServing = server?.page !== undefined
      const fault = isServing ? await findEnvFault(options, context) : undefined
      if (fault === undefined) {
        say('Restarting')
        await server?.stop()
        isBehind = false
        start()
      } else say(`mcp-host: ${fault}\nStill serving the previous version.`)
      restarting = undefined
      if (isBehind) handleChange()
    })()
    return restarting
  }

  function changed(files: readonly string[], areNew: boolean) {
    const change = `Changed: ${files.map(file => relative(folder, file)).join(', ')}`
    // The server prints new files only if something imports them.
    const isServing = !restarting && server?.page !== undefined
    if (!areNew || !isServing) say(change)
    if (restarting) isBehind = true
    else handleChange(areNew && isServing ? change : undefined)
  }

  function handleChange(change?: string) {
    isBehind = false
    if (server?.page !== undefined) {
      server.order('reload', change)
      types.run()
    } else if (server) void restart()
    else start()
  }

  const watch = await watchProject({ folder, always, changed })
  await new Promise<void>(leave => {
    let quits = 0
    const quit = () => {
      leave()
      if (quits++ === 0) return
      server?.kill()
      process.exit(1)
    }
    const releaseTerminal = readKeys(key => {
      if (key === 'q') quit()
      else if (quits > 0) return
      else if (key === 'r') void restart()
      else if (key === 'o' || key === 'e') openFor(key)
      else if (key === '?') say(KEY_HELP)
    })
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, quit)
    process.once('exit', releaseTerminal)
    // Starts after keys are read, because an exiting Node process restores the terminal state that it found.
    start()
  })
  say('Stopping. Press q again to stop immediately.')
  types.end()
  await restarting
  void watch.close().catch(() => undefined)
  await server?.stop()
  process.exit(0)
}

/** Returns why a new server could not read its environment; the old server then stays active. */
async function findEnvFault(options: DevOptions, context: CommandContext): Promise<string | undefined> {
  const { createEnvFiles } = await import('../config.ts')
  try {
    createEnvFiles(envFilesOf(options, context), { ...context, env: { ...context.env } }).load()
    return undefined
  } catch (error) {
    return errorText(error)
  }
}

export function envFilesOf(
  { config, 'env-file': envFiles }: DevOptions,
  { cwd }: CommandContext,
): () => readonly string[] {
  const standard = join(findConfig(config, cwd).folder, '.env')
  return () => envFiles ?? (existsSync(standard) ? [standard] : [])
}
