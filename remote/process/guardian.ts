// A process that kills the process groups of servers if this process ends without doing so, for example by SIGKILL.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'

/**
 * Reads the groups from its stdin, which ends with this process. Uses only `kill` and `read`, which all POSIX shells
 * have.
 */
const SCRIPT = `trap '' HUP INT TERM
groups=
while read -r change group; do
  left=
  for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
  [ "$change" = + ] && left="$left $group"
  groups=$left
done
for one in $groups; do kill -9 "-$one" 2>/dev/null; done`

const groups = new Set<number>()
let guardian: ChildProcess | undefined

function write(line: string): void {
  guardian?.stdin?.write(line)
}

function start(): void {
  const child = spawn('/bin/sh', ['-c', SCRIPT], {
    // In its own process group, because Ctrl-C in a terminal must not end this process first.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
    cwd: '/',
  })
  guardian = child
  const onExit = (): void => {
    if (guardian === child) guardian = undefined
  }
  child.on('error', onExit)
  child.on('exit', onExit)
  child.stdin.on('error', onExit)
  // The guardian must not keep this process running.
  child.unref()
  ;(child.stdin as Socket).unref()
  for (const group of groups) write(`+ ${group}\n`)
}

/** Without `/bin/sh`, and on Windows, groups are not guarded. */
export function guardGroup(group: number): void {
  groups.add(group)
  if (process.platform === 'win32') return
  if (guardian) write(`+ ${group}\n`)
  else start()
}

export function unguardGroup(group: number): void {
  if (groups.delete(group)) write(`- ${group}\n`)
}
