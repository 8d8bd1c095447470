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

const ACTION = `Correct what the complete message names; mcp-host check reports all problems of a config.
In a log line, fields such as reason, err and fix show the cause. Lines at level info require no action.`

/** Throws a usage error for an unknown code. */
export function explainCode(code: string): string {
  const folder = join(ownPackage.folder, 'docs')
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.md'))
    .map(file => ({ path: join(folder, file), text: readFileSync(join(folder, file), 'utf8') }))
    .filter(({ text }) => text.includes(code))
  if (pages.length === 0) throw usageError(`there is no code ${code}`, `${join(folder, 'codes.md')} lists the codes.`)
  const entry = new RegExp(`^- \`${code}\`:? ?(.*(?:\n {2}.*)*)`, 'm').exec(
    pages.map(({ text }) => text).join('\n'),
  )?.[1]
  const paths = pages.map(({ path }) => `  ${path}`).join('\n')
  const text = entry === undefined ? '' : `\n${plain(entry)}`
  return `${code}${text}${/\\\n/.test(entry ?? '') ? '' : `\n\n${ACTION}`}\n\nDocumentation:\n${paths}`
}
