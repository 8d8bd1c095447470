// What the processes of one `mcp-host start` have in common, and nobody else has: for the lock beside the file. A worker is told the
// process id of its primary as MCP_HOST_PRIMARY in its environment; a process without it is its own. A process id alone is
// that of many: containers have their own, and systems begin anew. So the machine and the time when that process began go along.
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

const PRIMARY = 'MCP_HOST_PRIMARY'

/** Nothing where the system has no such file. */
function read(file: string, by: (file: string) => string): string {
  try {
    return by(file)
  } catch {
    return ''
  }
}

/** In ticks since the machine started; the name of the program, before it, may have spaces and brackets. */
const startOf = (pid: string) =>
  read(
    `/proc/${pid}/stat`,
    file =>
      readFileSync(file, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[19] ?? '',
  )

export function nameCrew(): string {
  const pid = process.env[PRIMARY] ?? String(process.pid)
  const space = read('/proc/self/ns/pid', readlinkSync).replace(/\D/g, '')
  const boot = read('/proc/sys/kernel/random/boot_id', file => readFileSync(file, 'utf8')).trim()
  return [`process ${pid} on ${hostname()}`, startOf(pid), space, boot].filter(part => part !== '').join(', ')
}
