// Messages about the file: for the operator, for the health page, and for clients.
import { StartError } from '../../core/plugin.ts'
import { storeUnavailable } from '../../core/transport.ts'
import type { Failure } from './thread/messages.ts'

interface Explanation {
  readonly reason: string
  readonly fix: string
}

const EXPLANATIONS: Readonly<Record<Failure['code'], (file: string) => Explanation>> = {
  locked: file => ({
    reason: 'the file is locked by another program',
    fix: `stop the program that has ${file} open, such as a sqlite3 shell in a transaction (see \`lsof ${file}\`)`,
  }),
  full: file => ({
    reason: 'the disk is full, or the file has reached maxSize',
    fix: `free space on the disk of ${file}, or raise the option \`maxSize\``,
  }),
  readonly: file => ({
    reason: 'the file is read-only',
    fix: `allow the user of this process to write ${file} and its folder, on a disk that is not read-only`,
  }),
  damaged: file => ({
    reason: 'the file is damaged',
    fix:
      `stop the host and restore ${file} from a backup, or delete ${file}*; or start with \`ifDamaged: 'replace'\`, ` +
      'which renames the file and creates an empty file',
  }),
  alien: file => ({
    reason: 'the file is not a database',
    fix:
      `if ${file} belongs to another program, set another \`file\`. Otherwise it is damaged: restore a backup, or start ` +
      "with `ifDamaged: 'replace'`, which renames the file and creates an empty file",
  }),
  foreign: () => ({ reason: 'the file is a database of another program', fix: 'set another `file` for this host' }),
  version: file => ({
    reason: 'the file was written by another version of mcp-host',
    fix: `start that version again, or set another file: this version cannot read ${file}`,
  }),
  moved: file => ({
    reason: 'the file or its lock was deleted or replaced',
    fix: `restart the host, and let no other program delete or replace ${file} while it runs`,
  }),
  inUse: file => ({
    reason: 'another host uses the file',
    fix:
      `only one \`mcp-host start\` can use ${file}: stop the other, or set another \`file\`. For several processes use ` +
      '`--workers`, for several hosts cluster-redis. If the named process has ended, its workers possibly still finish ' +
      'their calls: try again in 30 seconds',
  }),
  path: file => ({
    reason: 'the file cannot be opened',
    fix: `allow the user of this process to write ${file} and its folder, or set another \`file\``,
  }),
  disk: file => ({ reason: 'the disk fails', fix: `check the disk of ${file} and the system log` }),
  late: file => ({
    reason: 'the file does not respond in time',
    fix: `check the disk of ${file} and its load`,
  }),
  bug: () => ({ reason: 'an unexpected error', fix: 'report it with this log line' }),
}

export const explainFailure = ({ code }: Failure, file: string): Explanation => EXPLANATIONS[code](file)

export function explainStart(failure: Failure, file: string): StartError {
  const { reason, fix } = explainFailure(failure, file)
  return new StartError('MH2401', `${file}: ${reason} (${failure.text}); ${fix}`, { exitCode: 1 })
}

/** Creates the error for clients; details are logged. An unexpected failure becomes a plain Error. */
export function unavailable(failure: Failure): Error {
  if (failure.code === 'bug') return new Error(`store-sqlite: ${failure.text}`)
  return storeUnavailable({ reason: `store-sqlite: ${failure.code}: ${failure.text}` })
}
