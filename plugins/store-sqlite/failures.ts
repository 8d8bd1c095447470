// Messages about the file: for the operator, for the health page, and for clients.
import { HostError } from '../../core/index.ts'
import { StartError } from '../../core/plugin.ts'
import type { Fault } from './thread/messages.ts'

const RETRY_AFTER = '2'

interface Explained {
  readonly reason: string
  readonly fix: string
}

const WORDS: Readonly<Record<Fault['word'], (file: string) => Explained>> = {
  locked: file => ({
    reason: 'another program holds the file',
    fix: `end what has ${file} open, such as a sqlite3 shell in a transaction (\`lsof ${file}\` names it)`,
  }),
  full: file => ({
    reason: 'the disk is full, or the file has its maxSize',
    fix: `make room on the disk of ${file}, or raise the option \`maxSize\``,
  }),
  readonly: file => ({
    reason: 'the file may only be read',
    fix: `let the user that runs this host write ${file} and its folder, on a disk that is not mounted read-only`,
  }),
  damaged: file => ({
    reason: 'the file is damaged',
    fix:
      `stop the host and put a backup in the place of ${file}, or delete it with what begins with its name; or start with ` +
      "`ifDamaged: 'replace'`, which puts it aside and begins an empty one",
  }),
  alien: file => ({
    reason: 'the file is no database',
    fix:
      `name another file in the option \`file\` where ${file} is something else; where it was this host's it is damaged: ` +
      "put a backup in its place, or start with `ifDamaged: 'replace'`, which puts it aside and begins an empty one",
  }),
  foreign: file => ({
    reason: 'the file is a database of another program',
    fix: `name a file of its own for this host in the option \`file\`, and leave ${file} to whose it is`,
  }),
  version: file => ({
    reason: 'the file was written by another version of mcp-host',
    fix: `start that version again, or name another file: this one cannot read ${file}`,
  }),
  moved: file => ({
    reason: 'the file or its lock was deleted or replaced',
    fix: `restart the host, and let no other program delete or replace ${file} while it runs`,
  }),
  crew: file => ({
    reason: 'another host has the file',
    fix:
      `one file serves one \`mcp-host start\`: stop the other, or give this one a \`file\` of its own beside ${file}; several ` +
      'processes of one host are `--workers`, and several hosts need cluster-redis. Where the named process is gone, its ' +
      'workers may still finish their calls: try again in half a minute',
  }),
  path: file => ({
    reason: 'the file cannot be opened',
    fix: `let the user that runs this host write ${file} and its folder, or name a file elsewhere in the option \`file\``,
  }),
  disk: file => ({ reason: 'the disk fails', fix: `look after the disk that has ${file}: the system's log says more` }),
  late: file => ({
    reason: 'the file does not answer in time',
    fix: `look after the disk that has ${file}, and its load`,
  }),
  bug: () => ({ reason: 'something unexpected', fix: 'report it, with this line of the log' }),
}

export const explainTrouble = ({ word }: Fault, file: string): Explained => WORDS[word](file)

export function explainStart(fault: Fault, file: string): StartError {
  const { reason, fix } = explainTrouble(fault, file)
  return new StartError('MH2401', `${file}: ${reason} (${fault.text}); ${fix}`, { exitCode: 1 })
}

/** The error for clients; the rest is logged. An unexpected fault becomes a plain Error. */
export function unavailable(fault: Fault): Error {
  if (fault.word === 'bug') return new Error(`store-sqlite: ${fault.text}`)
  return new HostError('unavailable', {
    detail: 'the session store is not available; try again',
    headers: { 'Retry-After': RETRY_AFTER },
    reason: `store-sqlite: ${fault.word}: ${fault.text}`,
  })
}
