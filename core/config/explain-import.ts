// Why a module could not be imported: the author's file and line, what was found there, and what to do. For a config written
// in code, its tools and its plugins. Node and esbuild say this in a dozen different ways.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorText } from '../http/errors.ts'
import { formatPath, type Path } from '../http/start-error.ts'
import { isUtf16, UTF16_FAULT, utf8Text } from '../http/utf8-text.ts'
import { nearest } from '../mcp/nearest.ts'
import { positionAt } from './position.ts'
import { type Mistake, shortName } from './problems.ts'
import { readTokens } from './tokens.ts'
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
    brokenManifest(error) ??
    unreadable(error) ??
    missing(error) ??
    notExported(error) ??
    unparsable(file, error) ??
    thrown(file, error)
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

/** How a module names what was looked for in vain, and where. */
function findSpecifier(source: string, wanted: string, folder: string): { written: string; line?: number } {
  const isWanted = (text: string) =>
    text === wanted ||
    text.startsWith(`${wanted}/`) ||
    (text !== '' && wanted.startsWith(resolve(folder, text))) ||
    endsIn(wanted, text)
  const token = readTokens(source).find(({ kind, text }) => kind === 'string' && isWanted(text.slice(1, -1)))
  if (token === undefined) return { written: wanted }
  return { written: token.text.slice(1, -1), line: positionAt(source, token.start).line }
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

const NOT_EXPORTED = /The requested module '([^']+)' does not provide an export named '([^']+)'/

/** An import of a name that its module does not export. */
function notExported(error: unknown): Cause | undefined {
  const [, specifier = '', name] = NOT_EXPORTED.exec(errorText(error)) ?? []
  const [, place, line] = /^(.+):(\d+)\n/.exec(stackOf(error)) ?? []
  if (name === undefined || place === undefined) return undefined
  const file = place.startsWith('file:') ? fileURLToPath(place) : place
  const near = specifier.startsWith('.') ? nearest(name, exportsOf(resolve(dirname(file), specifier))) : undefined
  const hint =
    near === undefined
      ? `; check the name${name === 'default' ? ', or import it in braces' : ''}`
      : `; did you mean "${near}"?`
  return { file, line: Number(line), why: `it imports "${name}", which "${specifier}" does not export${hint}` }
}

function exportsOf(file: string): string[] {
  if (!existsSync(file)) return []
  const found = readFileSync(file, 'utf8').matchAll(/^export (?:async )?(?:const|let|function\*?|class) ([\w$]+)/gm)
  return [...found].flatMap(([, name]) => name ?? [])
}

const MOST_CHECKED = 12

/** JavaScript that is none: Node tells the line to nobody but those who run it, so it is asked as a program. */
function unparsable(file: string, error: unknown): Cause | undefined {
  const isSyntax = error instanceof Error && error.name === 'SyntaxError'
  if (!isSyntax || authorFrame(file, error) !== undefined) return undefined
  const waiting = [file]
  for (const next of waiting) {
    if (waiting.indexOf(next) >= MOST_CHECKED) break
    const fault = checkSyntax(next)
    if (fault) return fault
    for (const { kind, text } of readTokens(readFileSync(next, 'utf8'))) {
      const path = resolve(dirname(next), text.slice(1, -1))
      const isModule = kind === 'string' && /^.\./.test(text) && /\.[cm]?js$/.test(path) && existsSync(path)
      if (isModule && !waiting.includes(path)) waiting.push(path)
    }
  }
  return undefined
}

function checkSyntax(file: string): Cause | undefined {
  if (!/\.[cm]?js$/.test(file)) return undefined
  try {
    execFileSync(process.execPath, ['--check', file], { stdio: 'pipe', env: {}, timeout: 10_000 })
    return undefined
  } catch (failure) {
    const said = String((failure as { stderr?: unknown }).stderr ?? '')
    const [, line] = /^.+:(\d+)$/m.exec(said) ?? []
    const [, why] = /^SyntaxError: (.*)$/m.exec(said) ?? []
    return line === undefined || why === undefined ? undefined : { file, line: Number(line), why }
  }
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
