// Reads, checks and creates the file of `secrets: { file }`, at startup only. Errors and logs never contain a secret.
import { randomBytes, randomUUID } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { access, type FileHandle, link, mkdir, open, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { errorText, StartError } from '../http/errors.ts'
import type { PluginConfig } from '../kernel/kernel-host.ts'
import type { Logger } from '../kernel/log.ts'
import { MIN_SECRET_LENGTH, publicKeyTypeOf } from '../kernel/secrets.ts'
import type { Problems } from './problems.ts'

/** Maximum file size, bytes: enough for a thousand secrets. */
const MAX_SIZE = 65_536
const HOW_TO_CREATE = 'make one with: openssl rand -base64 32'
/** Group read is allowed, because Kubernetes (`fsGroup`) and systemd rely on it for users other than root. */
const TOO_OPEN = 0o027

type Warn = (mistake: StartError) => void

const AT = ['secrets', 'file']
const stop = (text: string, cause?: unknown) => new StartError('MH1033', text, { at: AT, cause })

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** Returns undefined for a missing file. Opens without blocking, because a pipe without a writer would hang. */
async function openFile(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT' || codeOf(cause) === 'ENOTDIR') return undefined
    throw stop(`it cannot be read (${errorText(cause)}); let the user that runs this host read it`, cause)
  }
}

async function textIn(path: string, file: FileHandle, warn: Warn): Promise<string> {
  const info = await file.stat()
  if (!info.isFile()) {
    const what = info.isDirectory() ? 'a folder' : 'not a regular file'
    throw stop(`${path} is ${what}; use a file with one secret per line, or a new path: startup creates the file`)
  }
  if (process.platform !== 'win32' && (info.mode & TOO_OPEN) !== 0) {
    const mode = (info.mode & 0o777).toString(8).padStart(4, '0')
    const fix = `chmod 600 ${path}, or mount it with mode 0440 (Kubernetes)`
    const text = `users other than the one that runs this host can read or change ${path} (mode ${mode}); ${fix}`
    warn(new StartError('MH1034', text, { at: AT }))
  }
  await warnOfOpenFolder(dirname(path), warn)
  const buffer = Buffer.alloc(MAX_SIZE + 1)
  let size = 0
  for (let count = 1; count > 0; size += count) count = (await file.read(buffer, size, buffer.length - size)).bytesRead
  if (size <= MAX_SIZE) return buffer.toString('utf8', 0, size)
  throw stop(`${path} has more than 64 kB; a secrets file contains one secret per line`)
}

/** In a world-writable folder anyone can replace the file, unless the folder has the sticky bit. */
async function warnOfOpenFolder(folder: string, warn: Warn): Promise<void> {
  const { mode } = await stat(folder)
  if (process.platform === 'win32' || (mode & 0o1002) !== 0o002) return
  const what = `anyone on this machine can replace files in ${folder} (mode ${(mode & 0o777).toString(8)})`
  warn(new StartError('MH1043', `${what}; chmod o-w ${folder}`, { at: AT }))
}

function problemOf(line: string): string | undefined {
  if ([...line].some(character => character < ' ' || character === '\u007f' || character === '\ufffd')) {
    return `is not text; ${HOW_TO_CREATE}`
  }
  if (line.length < MIN_SECRET_LENGTH) return `is shorter than ${MIN_SECRET_LENGTH} characters; ${HOW_TO_CREATE}`
  const key = publicKeyTypeOf(line)
  return key && `is ${key}, which is public; ${HOW_TO_CREATE}`
}

function linesOf(path: string, text: string): string[] {
  const key = publicKeyTypeOf(text)
  if (key !== undefined) throw stop(`${path} has ${key}, which is public; ${HOW_TO_CREATE}`)
  const secrets: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const secret = line.trim()
    if (secret === '') continue
    const problem = problemOf(secret)
    if (problem !== undefined) throw stop(`line ${index + 1} of ${path} ${problem}`)
    secrets.push(secret)
  }
  if (secrets.length > 0) return secrets
  throw stop(`${path} is empty; put a secret into it (openssl rand -base64 32), or delete it, and startup creates one`)
}

export async function readSecrets(path: string, warn: Warn): Promise<string[] | undefined> {
  const file = await openFile(path)
  if (!file) return undefined
  try {
    return linesOf(path, await textIn(path, file, warn))
  } finally {
    await file.close()
  }
}

const unwritable = (path: string, cause: unknown) => {
  const fix = `give the user that runs this host write access to ${dirname(path)}, or create the file: openssl rand -base64 32`
  return stop(`${path} does not exist and cannot be created (${errorText(cause)}); ${fix}`, cause)
}

async function checkCreatable(path: string): Promise<void> {
  let folder = dirname(path)
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder)
  try {
    await access(`${folder}/.`, constants.W_OK)
  } catch (cause) {
    throw unwritable(path, cause)
  }
}

/** Writes a temporary file, then links it. False if the target exists. */
async function createAtomically(path: string, temporary: string): Promise<boolean> {
  const folder = dirname(path)
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (made !== undefined) await writeFile(join(folder, '.gitignore'), '*\n')
  await writeFile(temporary, `${randomBytes(32).toString('base64url')}\n`, { flag: 'wx', mode: 0o600, flush: true })
  try {
    await link(temporary, path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    if (existsSync(path)) return false
    throw new Error('it is a link to a missing file')
  }
  return true
}

/** Creates the file with one secret, mode 0600 (folder: 0700). False if another process created it first. */
export async function createSecretsFile(path: string): Promise<boolean> {
  const temporary = `${path}.${randomUUID()}.tmp`
  try {
    return await createAtomically(path, temporary)
  } catch (cause) {
    throw unwritable(path, cause)
  } finally {
    await rm(temporary, { force: true }).catch(() => undefined)
  }
}

export interface ConfiguredSecrets {
  readonly list: ReadonlyArray<string | undefined>
  readonly isOfFile: boolean
}

interface SecretsContext {
  readonly directory: string
  readonly purpose: PluginConfig['purpose']
  readonly isReload: boolean
  readonly log: Logger
  readonly problems: Problems
}

/** A placeholder if only startup can create the file. Constant, so that a reload detects no change. */
const PLACEHOLDER = randomBytes(32).toString('base64url')

export const hasEnvironmentSecrets = (env: NodeJS.ProcessEnv = process.env) =>
  /[^\s,]/.test(env['MCP_HOST_SECRETS'] ?? '')

export async function secretsOfFile(file: string, context: SecretsContext): Promise<ConfiguredSecrets> {
  if (hasEnvironmentSecrets()) return { list: [], isOfFile: false }
  const list = await context.problems.attempt(() => readOrCreate(resolve(context.directory, file), context))
  return { list: list ?? [PLACEHOLDER], isOfFile: true }
}

const CREATED =
  'created a file with a secret, which signs session ids. Keep the file, and copy it to other machines that serve this URL'

async function readOrCreate(path: string, { purpose, isReload, log, problems }: SecretsContext) {
  const warn = (mistake: StartError) => problems.report(mistake, 'warning')
  const found = await readSecrets(path, warn)
  if (found) return found
  if (purpose === 'inspect') await checkCreatable(path)
  // A failing startup creates no file.
  if (purpose !== 'serve' || isReload || problems.count() > 0) return undefined
  if (await createSecretsFile(path)) log.info({ code: 'MH1035', file: path }, CREATED)
  return readSecrets(path, warn)
}
