// Screen 11: the last lines of the audit, and whether they form a chain.
import { open } from 'node:fs/promises'
import { isObject } from '../../core/plugin.ts'
import type { AuditTail } from './api.ts'

/** Bytes that are read from the end of the file. */
const MAX_BYTES = 512 * 1_024

async function readEnd(file: string): Promise<string[]> {
  const handle = await open(file, 'r')
  try {
    const { size } = await handle.stat()
    const from = Math.max(0, size - MAX_BYTES)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from)
    const lines = buffer.subarray(0, bytesRead).toString().split('\n')
    // The first line can be cut, and the text behind the last line break is being written.
    return lines.slice(from === 0 ? 0 : 1, -1)
  } finally {
    await handle.close()
  }
}

function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line)
    if (isObject(value)) return value
  } catch {
    // Shown as unreadable.
  }
  return { unreadable: true }
}

/** Follows `seq` and `prev`. `mcp-host audit verify` also checks the signatures, which require the secrets. */
function followChain(lines: AuditTail['lines']): AuditTail['chain'] {
  const [first, last] = [lines[0], lines.at(-1)]
  const numberOf = (value: unknown) => (typeof value === 'number' ? value : undefined)
  const [from, to] = [numberOf(first?.['seq']), numberOf(last?.['seq'])]
  const head = last?.['hash']
  const facts = {
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(typeof head === 'string' && { head }),
  }
  const broken = lines.findIndex((line, index) => {
    if (line['unreadable'] === true) return true
    const before = lines[index - 1]
    return before !== undefined && (line['prev'] !== before['hash'] || line['seq'] !== Number(before['seq']) + 1)
  })
  if (broken === -1) return { state: 'ok', ...facts }
  const line = lines[broken]
  const problem = line?.['unreadable']
    ? 'A line is unreadable.'
    : `Line ${line?.['seq']} does not follow the line before.`
  return { state: 'broken', ...facts, problem }
}

/** Members of audit lines that the console does not show. */
const PERSONAL = ['arguments', 'ip', 'session', 'subject', 'issuer']

/** Rejects if the file cannot be read. */
export async function readAuditTail(file: string, name: string, max: number, program: string): Promise<AuditTail> {
  const lines = (await readEnd(file)).slice(-max).map(parse)
  const commands = [{ label: 'Verify the whole file', command: `${program} audit verify ${name}` }]
  const shown = lines.map(line => Object.fromEntries(Object.entries(line).filter(([key]) => !PERSONAL.includes(key))))
  return { file: name, lines: shown, chain: followChain(lines), commands }
}
