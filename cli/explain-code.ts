// `mcp-host help MH1012`: the messages of a code, and the pages of the documentation that name it.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { usageError } from './command.ts'
import { ownPackage } from './version.ts'

/** Formats an entry of docs/codes.md as plain text: the message, an empty line, the explanation. */
const plain = (entry: string) =>
  entry
    .replace(/\\\n {2}/, '\n\n')
    .replace(/\n {2}/g, ' ')
    .replace(/\[([^\]]*)\]\(([^)]*)\)/g, '$1 (docs/$2)')
    .replaceAll('`', '')
    .trim()

const ACTION = `For an error: correct what the complete message names. mcp-host check reports the problems of a config.
For a log line: fields such as reason, err and fix show the cause. Lines at level info require no action.`

/** Returns the table row of an error kind or of a code of client errors; undefined if there is none. */
export function explainKind(kind: string): string | undefined {
  const path = join(ownPackage.folder, 'docs', kind.includes('_') ? 'client.md' : 'errors.md')
  const row = new RegExp(`^\\| [^|]*\`${kind}\`[^|]*\\| (.*) \\|$`, 'm').exec(readFileSync(path, 'utf8'))?.[1]
  return row && `${kind}\n${plain(row.replaceAll(' | ', '\n'))}\n\nDocumentation:\n  ${path}`
}

/** Throws a usage error for an unknown code. */
export function explainCode(code: string): string {
  const folder = join(ownPackage.folder, 'docs')
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.md'))
    .map(file => ({ path: join(folder, file), text: readFileSync(join(folder, file), 'utf8') }))
    .filter(({ text }) => text.includes(code))
  if (pages.length === 0) throw usageError(`there is no code ${code}`, `${join(folder, 'codes.md')} lists the codes.`)
  const all = pages.map(({ text }) => text).join('\n')
  const entry = new RegExp(`^- \`${code}\`:? ?(.*(?:\n {2}.*)*)`, 'm').exec(all)?.[1]
  const [, area = ''] = new RegExp(`^## ${code.slice(0, 4)}: (.*)`, 'm').exec(all) ?? []
  const paths = pages.map(({ path }) => `  ${path}`).join('\n')
  const text = `\n${plain(entry ?? `This code has several messages. Area: ${area}`)}`
  return `${code}${text}${/\\\n/.test(entry ?? '') ? '' : `\n\n${ACTION}`}\n\nDocumentation:\n${paths}`
}
