// The CLI as an operator runs it: a process of its own, in a folder with a config. Its code is a bundle
// of what the package has, which starts faster; test/slow/package.slow.ts runs the package itself.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundledFile } from '../support/compiled.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** For configs in folders outside of this repository, where `mcp-host` is no package that can be found: the CLI's own. */
export const CORE = pathToFileURL(bundledFile('core/index.ts')).href
/** The same for `mcp-host/auth`. */
export const AUTH = pathToFileURL(bundledFile('core/auth.ts')).href

export interface Ended {
  /** The exit code, or the signal that ended it. */
  readonly code: number | NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  /** Resolves when it has ended and all it wrote was read. */
  readonly ended: Promise<Ended>
  /** Waits until stdout has `words` and returns the match. Rejects when the process ends without it, or after `patience` ms (50,000). */
  printed(words: RegExp, patience?: number): Promise<RegExpExecArray>
  /** The same for stderr. */
  logged(words: RegExp, patience?: number): Promise<RegExpExecArray>
  /** Waits until it serves, and returns where. */
  listening(): Promise<string>
}

/** Milliseconds; less than tests have, so that it is said what there was in the place of what is waited for. */
const PATIENCE = 50_000

const running = new Set<ChildProcessByStdio<Writable, Readable, Readable>>()

/** The command line of `mcp-host ...args`. */
export const cliCommand = (args: readonly string[]): string[] => [process.execPath, bundledFile('cli/main.ts'), ...args]

/** Runs `mcp-host ...args` in `cwd`; `env` is put over this process's own. */
export function startCli(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Running {
  return startProgram(cliCommand(args), cwd, env)
}

/** Runs any program in the same way. */
export function startProgram([file = '', ...argv]: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Running {
  const child = spawn(file, argv, { cwd, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  running.add(child)
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text.stdout += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text.stderr += chunk
  })
  const ended = once(child, 'close').then(([code, signal]): Ended => {
    running.delete(child)
    return { code: code ?? signal, ...text }
  })

  async function written(stream: 'stdout' | 'stderr', words: RegExp, patience = PATIENCE): Promise<RegExpExecArray> {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), patience).unref()
    try {
      for (;;) {
        const match = words.exec(text[stream])
        if (match) return match
        const end = await Promise.race([once(child[stream], 'data', { signal: late.signal }), ended])
        if (!Array.isArray(end) && !words.test(end[stream])) {
          throw new Error(`ended with ${end.code} without ${words}:\n${end.stdout}${end.stderr}`)
        }
      }
    } catch (cause) {
      if (!late.signal.aborted) throw cause
      throw new Error(`waited ${patience} ms in vain for ${words}:\n${text.stdout}${text.stderr}`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  const printed = (words: RegExp, patience?: number) => written('stdout', words, patience)
  const logged = (words: RegExp, patience?: number) => written('stderr', words, patience)
  const listening = async () => (await printed(/^listening on (https?:\S+)$/m))[1] ?? ''
  return { child, ended, printed, logged, listening }
}

/** Runs `mcp-host ...args` in `cwd` to its end. */
export const runCli = (args: readonly string[], cwd: string, env?: NodeJS.ProcessEnv): Promise<Ended> =>
  startCli(args, cwd, env).ended

/** Ends what a failed test left running: for `after`. */
export async function stopAll(): Promise<void> {
  const ends = [...running].map(child => once(child, 'close'))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(ends)
}

export interface ConfigParts {
  /** JavaScript in front of the config. */
  readonly before?: string
  readonly http?: string
  readonly routes?: string
  /** Default: one that is long enough. */
  readonly secrets?: string
  /** Properties of `plugins`, beside the transport. */
  readonly plugins?: string
  /** The one tool of the second toolset. */
  readonly tool?: string
}

const OTHER = "defineTool({ name: 'other', handler: () => 'other' })"

/** The text of an `mcp.config.mjs`; each part is JavaScript. */
export const configText = (parts: ConfigParts = {}): string => `import { definePlugin, defineTool } from '${CORE}'
${parts.before ?? ''}
export default {
  server: { name: 'cli-test', version: '1.0.0' },
  http: ${parts.http ?? '{ port: 0 }'},
  secrets: ${parts.secrets ?? "['a secret for tests, long enough to be one']"},
  toolsets: { first: [defineTool({ name: 'echo', handler: () => 'echoed' })], second: [${parts.tool ?? OTHER}] },
  routes: ${parts.routes ?? "{ '/': { toolsets: ['first', 'second'] } }"},
  plugins: { 'transport-streamable': {}, ${parts.plugins ?? ''} },
}
`
