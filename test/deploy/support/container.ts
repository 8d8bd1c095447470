// Runs the command of an image like a container engine: process 1 of its own process table, the user of the image, a
// read-only root and no privileges. It shares the network of this machine.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Context } from 'mocha'
import { eventually } from '../../support/eventually.ts'
import { needsProgram, pending } from '../../support/needs-program.ts'
import type { Image } from './image.ts'

const run = promisify(execFile)

export interface Ended {
  readonly code: number
  readonly said: string
}

export interface Container {
  /** Of the command, as this machine knows it; 0 where it ended before it was found. */
  readonly pid: number
  /** What it printed so far, both streams. */
  said(): string
  /** Another process in it, as `docker exec` and a health check start one. */
  exec(command: readonly string[]): Promise<Ended>
  signal(name: NodeJS.Signals): void
  /** Its exit code, once it has ended. */
  readonly ended: Promise<number | null>
}

/** With root's rights alone; where even root may not mount, the test is pending and it is said why. */
export async function needsContainers(context: Context): Promise<void> {
  needsProgram(context, 'unshare', 'apt-get install util-linux')
  const [program, args] = ['unshare', ['--mount', '--pid', '--fork', 'sh', '-c', 'mount -t tmpfs none /mnt']] as const
  const why = await run(program, args).then(
    () => undefined,
    error => String(error.stderr || error),
  )
  if (why !== undefined) pending(context, `no container can be made here: ${why.trim()}`)
}

/** With process 1 of each, once it is known. */
const running = new Map<ChildProcess, number>()

/** Process 1 itself, with which all of its own end: it changed its user, and so outlives what started it. */
function kill(child: ChildProcess) {
  const first = running.get(child)
  try {
    if (first) process.kill(first, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
  child.kill('SIGKILL')
}
process.once('exit', () => {
  for (const child of running.keys()) kill(child)
})

/** Shell lines that put together what the container sees, in a mount table of its own. */
function mountLines(root: string, mounted: ReadonlyMap<string, string>): string {
  const binds = [...mounted].map(([place, source]) => `mount --bind ${source} ${root}${place}`)
  return ['set -e', `mount --bind ${root} ${root}`, ...binds, `mount -o remount,bind,ro ${root}`].join('\n')
}

/** uid and gid: numbers, for the names of a base image are not known here. */
function idsOf(user: string | undefined): readonly [string, string] {
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(user ?? '') ?? []
  if (uid === undefined || gid === undefined || uid === '0') throw new Error(`not the numbers of a user: ${user}`)
  return [uid, gid]
}

const statusOf = (pid: number | string) => {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    // It has ended meanwhile.
    return ''
  }
}

/** The one that a process started, of which that started the next, and so on: process 1 of the container, once it is there. */
function findFirst(parent: number): number | undefined {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  const child = pids.find(pid => new RegExp(`^PPid:\\s+${parent}$`, 'm').test(statusOf(pid)))
  if (child === undefined) return undefined
  // Before it is the command it is still `unshare`.
  if (/^Name:\s+(?!unshare|sh$)/m.test(statusOf(child)) && /^NSpid:(\s+\d+)*\s+1$/m.test(statusOf(child)))
    return Number(child)
  return findFirst(Number(child))
}

export async function startContainer(
  image: Image,
  mounted: ReadonlyMap<string, string>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Container> {
  const { root, stage } = image
  const [uid, gid] = idsOf(stage.user)
  const environment = Object.entries({ HOME: '/home/node', ...stage.env, ...env })
  const inside = ['--setgid', gid, '--setuid', uid, '--wd', stage.workdir]
  const enter = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc=/proc', `--root=${root}`, ...inside]
  const script = `${mountLines(root, mounted)}\nexec "$@"`
  // The image's own PATH, and this machine's, for what enters it.
  const entering = { ...Object.fromEntries(environment), PATH: `/usr/local/bin:${process.env['PATH']}` }
  const child = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', ...enter, '--', ...stage.command], {
    env: entering,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.set(child, 0)
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', part => {
      text += part
    })
  const ended = once(child, 'exit').then(([code]) => {
    running.delete(child)
    return code as number | null
  })
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const found = () => (hasEnded() ? 0 : findFirst(child.pid ?? 0))
  const pid = (await eventually('process 1 of the container', found, pid => pid !== undefined)) ?? 0
  if (running.has(child)) running.set(child, pid)
  return {
    pid,
    said: () => text,
    exec: async command => {
      const where = ['-t', String(pid), '--mount', '--pid', '--root', '--wd', '-S', uid, '-G', gid]
      return run('nsenter', [...where, '--', `/usr/local/bin/${command[0]}`, ...command.slice(1)], {
        env: entering,
      }).then(
        ({ stdout, stderr }) => ({ code: 0, said: `${stdout}${stderr}` }),
        // One that a signal ended has no code.
        error => ({ code: error.code ?? -1, said: `${error.stdout}${error.stderr}` }),
      )
    },
    signal: name => void process.kill(pid, name),
    ended,
  }
}

/** Ends every container that this file started: call it in `after`. */
export async function stopContainers(): Promise<void> {
  await Promise.all(
    [...running.keys()].map(async child => {
      const gone = once(child, 'exit')
      kill(child)
      await gone
    }),
  )
}
