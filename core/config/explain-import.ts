// Explains import failures: the author's file and line, with the text of Node.js or esbuild.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { attempt } from '../http/describe-thrown.ts'
import { errorText, formatPath, type Path } from '../http/errors.ts'
import { isUtf16, UTF16_ERROR } from '../http/utf8-text.ts'
import { nearest } from '../mcp/nearest.ts'
import { lineAt, nodesIn, parseCode } from './locate-in-code.ts'
import { type StartProblem, shortName } from './problems.ts'

interface Place {
  readonly file: string
  readonly line?: number | undefined
}

/** Explains the rejection of `import(file)`. `at`: the config path that names the file. */
export function explainImport(file: string, error: unknown, at: Path = []): StartProblem {
  const compiled = COMPILER.exec(errorText(error))
  const place: Place = compiled
    ? { file: compiled[1] ?? file, line: Number(compiled[2]) }
    : (importerOf(error) ?? authorFrame(file, error) ?? findSyntaxError(file, error) ?? { file })
  const why = compiled?.[3] ?? errorText(error).split('\n')[0]
  const isWrongEncoding = isUtf16(textOf(place.file))
  const { line } = isWrongEncoding ? { line: undefined } : place
  const subject = at.length === 0 ? '' : `${formatPath(at)} `
  return {
    code: 'MH1007',
    file: place.file,
    ...(line !== undefined && { line }),
    ...(at.length > 0 && { path: formatPath(at) }),
    text: `${subject}cannot be loaded: ${isWrongEncoding ? UTF16_ERROR : why}${adviceFor(error, place.file)}`,
    cause: error,
  }
}

const textOf = (file: string): string => attempt(() => readFileSync(file, 'utf8')) ?? ''

const COMPILER = /^(.+):(\d+):\d+: (?:ERROR|error): (.*)$/m
const NOT_FOUND = /^Cannot find (?:module|package) '([^']+)'(?:.* imported from |\nRequire stack:\n- )(.+?)(?:\n|$)/

function importerOf(error: unknown): Place | undefined {
  const [, wanted, from] = NOT_FOUND.exec(errorText(error)) ?? []
  if (wanted === undefined || from === undefined) return undefined
  const file = from.startsWith('file:') ? fileURLToPath(from) : from
  const source = textOf(file)
  const name = basename(wanted, extname(wanted)).replaceAll(/\W/g, '\\$&')
  const offset = source.search(new RegExp(`['"\`][^'"\`\\n]*${name}[^'"\`\\n]*['"\`]`))
  return { file, line: offset === -1 ? undefined : lineAt(source, offset) }
}

const DATA = /\.(?:json|ya?ml)$/

export function nearestFile(file: string, written: string): string {
  const folder = dirname(file)
  if (!existsSync(folder)) return `; the folder ${shortName(folder)} does not exist`
  const kind = DATA.test(file) ? DATA : /\.[cm]?[jt]sx?$/
  const names = readdirSync(folder).filter(name => kind.test(name))
  const stem = (name: string) => basename(name, extname(name))
  const wanted = basename(file)
  const nearStem = nearest(stem(wanted), names.map(stem))
  const near = nearest(wanted, names) ?? names.find(name => stem(name) === nearStem)
  if (near === undefined) return names.length === 0 ? '' : `; available: ${names.sort().slice(0, MAX_FILES).join(', ')}`
  return `; did you mean "${written.slice(0, written.length - wanted.length)}${near}"?`
}

const MAX_FILES = 10
const MAX_CHECKED = 12

/** Finds a syntax error in the file or its imports, whose location Node.js prints only to stderr. */
function findSyntaxError(file: string, error: unknown): Place | undefined {
  if (!(error instanceof SyntaxError)) return undefined
  const files = [file]
  for (const next of files) {
    const { file: tree, syntaxError } = parseCode(readFileSync(next, 'utf8'))
    if (syntaxError) return { file: next, line: syntaxError.line }
    for (const node of nodesIn(tree)) {
      const path = node.type === 'StringLiteral' && resolve(dirname(next), node.value)
      if (path && /\.[cm]?js$/.test(path) && existsSync(path) && files.length < MAX_CHECKED && !files.includes(path)) {
        files.push(path)
      }
    }
  }
  return undefined
}

const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? '') : '')

function authorFrame(file: string, error: unknown): { file: string; line: number } | undefined {
  const ours = fileURLToPath(new URL('../../', import.meta.url))
  for (const [, place = '', line] of stackOf(error).matchAll(
    /(?:\(|at (?:async )?|^)((?:file:\/\/)?\/[^():\n]+|[A-Z]:[^():\n]+):(\d+)/gm,
  )) {
    const path = place.startsWith('file:') ? fileURLToPath(place) : place
    if (path === file || !(path.includes('/node_modules/') || path.startsWith(ours)))
      return { file: path, line: Number(line) }
  }
  return undefined
}

const NOT_ESM = /Top-level await|outside a module|Unexpected token 'export'/

function adviceFor(error: unknown, file: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (NOT_ESM.test(errorText(error)) && !parseCode(textOf(file)).syntaxError) {
    const extension = /tsx?$/.test(file) ? '.mts' : '.mjs'
    return `; put "type": "module" into the package.json of its folder, or rename the file to ${extension}`
  }
  return code === 'ERR_UNKNOWN_FILE_EXTENSION' ? '; a config that imports TypeScript must be mcp.config.ts itself' : ''
}
