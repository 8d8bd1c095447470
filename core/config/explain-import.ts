// Why a module could not be imported: the author's file and line, what was found there, and what to do. For a config written
// in code, its tools and its plugins. Node and esbuild say this in a dozen different ways.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorText, formatPath, type Path } from '../http/errors.ts'
import { isUtf16, UTF16_FAULT, utf8Text } from '../http/utf8-text.ts'
import { nearest } from '../mcp/nearest.ts'
import { nodesIn, parseCode } from './parse-code.ts'
import { type Mistake, shortName } from './problems.ts'
import { explainPaths } from './tsconfig-paths.ts'

/** Why a module is none: in which file, its own or one that it imports. */
interface Cause {
  readonly file: string
  readonly line?: number | undefined
  readonly why: string
}

/** Explains what `import()` of `file` rejected with; `at` names it in the config. */
export function explainImport(file: string, error: unknown, at: Path = []): Mistake {
  const cause =
    brokenManifest(error) ?? unreadable(error) ?? missing(error) ?? unparsable(file, error) ?? thrown(file, error)
  const { file: blamed, line, why } = isUtf16(textOf(cause.file)) ? { file: cause.file, why: UTF16_FAULT } : cause
  const subject = at.length === 0 ? '' : `${formatPath(at)} `
  const text = `${subject}cannot be loaded: ${why}${adviceFor(error)}`
  return {
    file: blamed,
    ...(line !== undefined && { line }),
    ...(at.length > 0 && { path: formatPath(at) }),
    text,
    cause: error,
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** A package.json that tsx cannot read. */
function brokenManifest(error: unknown): Cause | undefined {
  const [, file] = /^Error parsing: (.+)$/m.exec(errorText(error)) ?? []
  if (file === undefined) return undefined
  const isMarked = textOf(file).startsWith('\uFEFF')
  const why = isMarked
    ? 'the file begins with a byte order mark, which tsx cannot read; save it as UTF-8 without one'
    : 'the file is not valid JSON'
  return { file, why }
}

const ESBUILD = /^(.+):(\d+):\d+: (?:ERROR|error): (.*)$/m

/** TypeScript that is none. */
function unreadable(error: unknown): Cause | undefined {
  const [, file, line, why] = ESBUILD.exec(errorText(error)) ?? []
  return file === undefined || why === undefined ? undefined : { file, line: Number(line), why }
}

const FROM_MODULE = /^Cannot find (?:module|package) '([^']+)'.* imported from (.+?)(?:\n|$)/
const FROM_COMMONJS = /^Cannot find module '([^']+)'\nRequire stack:\n- (.+?)(?:\n|$)/

/** An import of what is not there. */
function missing(error: unknown): Cause | undefined {
  const text = errorText(error)
  const [, wanted, from] = FROM_MODULE.exec(text) ?? FROM_COMMONJS.exec(text) ?? []
  if (wanted === undefined || from === undefined) return undefined
  const file = from.startsWith('file:') ? fileURLToPath(from) : from
  if (!existsSync(file)) return undefined
  const source = readFileSync(file, 'utf8')
  const { written, line } = findSpecifier(source, wanted, dirname(file))
  const folder = dirname(file)
  const isFile = written.startsWith('.') || written.startsWith('/')
  const reason = isFile
    ? `and there is no such file${nearestFile(resolve(folder, written), written)}`
    : (explainPaths(written, folder) ?? `which is not installed${howToInstall(written, folder)}`)
  return { file, line, why: `it imports "${written}", ${reason}` }
}

/** How the module spells the import that failed, and its line. */
function findSpecifier(source: string, wanted: string, folder: string): { written: string; line?: number } {
  const isWanted = (text: string) =>
    text === wanted ||
    text.startsWith(`${wanted}/`) ||
    (text !== '' && wanted.startsWith(resolve(folder, text))) ||
    endsIn(wanted, text)
  const { file } = parseCode(source)
  const found = nodesIn(file).find(node => node.type === 'StringLiteral' && isWanted(node.value))
  if (found?.type !== 'StringLiteral') return { written: wanted }
  return { written: found.value, ...(found.loc && { line: found.loc.start.line }) }
}

/** A file of a package that has no such: `koa/nope`. */
const endsIn = (file: string, specifier: string): boolean =>
  specifier.includes('/') &&
  /^[@\w]/.test(specifier) &&
  file.replace(/\.\w+$/, '').endsWith(`/node_modules/${specifier}`)

/** The name that npm knows: `@scope/name` of `@scope/name/part`. */
const packageOf = (specifier: string): string => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')

const PACKAGE = /^(?:@[\w.-]+\/)?[a-z0-9][\w.-]*$/

function howToInstall(specifier: string, folder: string): string {
  const name = packageOf(specifier)
  if (!PACKAGE.test(name)) return `; write a path that begins with "./", or a package's name`
  const near = nearest(
    name,
    dependenciesNear(folder).filter(known => known !== name),
  )
  return near === undefined ? `; run: npm install ${name}` : `; did you mean "${near}"? Else run: npm install ${name}`
}

/** What the nearest package.json lists. */
function dependenciesNear(folder: string): string[] {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) return dirname(folder) === folder ? [] : dependenciesNear(dirname(folder))
  try {
    const { dependencies, devDependencies } = JSON.parse(utf8Text(readFileSync(file, 'utf8'))) as Record<string, object>
    return Object.keys({ ...dependencies, ...devDependencies })
  } catch {
    return []
  }
}

/** "Did you mean" for a file that is not there, in the spelling of `written`. */
export function nearestFile(file: string, written: string): string {
  const folder = dirname(file)
  if (!existsSync(folder)) return `; there is no folder ${shortName(folder)} either`
  const names = readdirSync(folder).filter(name => /\.(?:[cm]?[jt]sx?|json|ya?ml)$/.test(name))
  const stem = (name: string) => basename(name, extname(name))
  const wanted = basename(file)
  const nearStem = nearest(stem(wanted), names.map(stem))
  const near = nearest(wanted, names) ?? names.find(name => stem(name) === nearStem)
  if (near === undefined)
    return names.length === 0 ? '' : `; there are: ${names.sort().slice(0, MOST_FILES).join(', ')}`
  return `; did you mean "${written.slice(0, written.length - wanted.length)}${near}"?`
}

const MOST_FILES = 10

const MOST_CHECKED = 12

/** A syntax error in JavaScript, here or in a file that this one imports: Node tells the place only on stderr. */
function unparsable(file: string, error: unknown): Cause | undefined {
  if (!(error instanceof SyntaxError) || authorFrame(file, error) !== undefined) return undefined
  const files = [file]
  for (const next of files) {
    const { file: tree, fault } = parseCode(readFileSync(next, 'utf8'))
    if (fault) return { file: next, line: fault.line, why: errorText(error) }
    for (const node of nodesIn(tree)) {
      const path = node.type === 'StringLiteral' && resolve(dirname(next), node.value)
      if (path && /\.[cm]?js$/.test(path) && existsSync(path) && files.length < MOST_CHECKED && !files.includes(path)) {
        files.push(path)
      }
    }
  }
  return undefined
}

/** What the module, or one that it imports, threw while it ran. */
function thrown(file: string, error: unknown): Cause {
  const [why = ''] = errorText(error).split('\n')
  return { ...(authorFrame(file, error) ?? { file }), why }
}

const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? '') : '')

/** The first place of the stack that is the author's: no part of Node, of a package or of ours. */
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

function adviceFor(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (errorText(error).includes('Top-level await')) {
    return '; put "type": "module" into the package.json beside it, or name the file .mts'
  }
  return code === 'ERR_UNKNOWN_FILE_EXTENSION' ? '; a config that imports TypeScript must be mcp.config.ts itself' : ''
}
