// `mcp-host audit`: verifies audit files, and prints the pseudonym of a person in them. Read-only; secrets are never shown.
import { readdir, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { printable } from '../client/text.ts'
import { loadConfig } from '../core/config/load-config.ts'
import { hasEnvironmentSecrets, readSecrets } from '../core/config/secrets-file.ts'
import { errorText, StartError } from '../core/http/errors.ts'
import { createPseudonyms } from '../core/kernel/pseudonyms.ts'
import { createSecrets, type Secrets } from '../core/kernel/secrets.ts'
import { isObject } from '../core/plugin.ts'
import { keySigner } from '../plugins/audit/chain.ts'
import { type Broken, type ChainReport, verifyTrail } from '../plugins/audit/verify-trail.ts'
import { CONFIG_OPTION, type CommandValues, defineCommand, ENV_FILE_OPTION } from './command.ts'
import { loadEnvFiles } from './config.ts'
import { type CommandContext, usage } from './context.ts'

const OPTIONS = {
  config: { ...CONFIG_OPTION.config, help: 'Config with the secrets of the audit [MCP_HOST_SECRETS]' },
  ...ENV_FILE_OPTION,
  head: {
    value: '<hash>',
    multiple: true,
    help: 'verify: a hash from the log of the host; without it, removed last lines are not detected',
  },
  'allow-plain': { help: 'verify: accept files written without secrets' },
  issuer: { value: '<url>', help: 'who: issuer of the subject, as in the token' },
  claim: { value: '<name>', help: 'who: claim that contains the subject [sub]' },
} as const

type AuditValues = CommandValues<typeof OPTIONS>

async function loadSecrets({ config, 'env-file': files }: AuditValues, { env, cwd }: CommandContext): Promise<Secrets> {
  loadEnvFiles(files, { env, cwd })
  const loaded = config === undefined ? undefined : await loadConfig({ cwd, file: config })
  const written = isObject(loaded?.config) ? loaded.config['secrets'] : undefined
  if (loaded && isObject(written) && typeof written['file'] === 'string' && !hasEnvironmentSecrets(env)) {
    return createSecrets(await readSecrets(resolve(dirname(loaded.file), written['file']), () => undefined))
  }
  const configuredSecrets = Array.isArray(written)
    ? written.map(secret => (typeof secret === 'string' ? secret.replace(/[\r\n]+$/, '') : undefined))
    : []
  return createSecrets(configuredSecrets, env['MCP_HOST_SECRETS'])
}

/** Matches lock files and leftovers of killed processes, which a glob such as `audit*` also selects. */
const LOCK = /\.lock(?:\.[\da-f-]+)*$/

/** Returns the audit files of a file or folder. Rejects for anything else: reading a pipe without a writer would hang. */
async function listFiles(place: string, { cwd, say }: CommandContext): Promise<string[]> {
  if (LOCK.test(place)) {
    say(`${place}: skipped, because it is an audit lock file`)
    return []
  }
  const path = resolve(cwd, place)
  const info = await stat(path)
  if (info.isFile()) return [await realpath(path)]
  if (!info.isDirectory()) throw new Error('it is neither a file nor a folder')
  const names = (await readdir(path)).filter(name => name.endsWith('.jsonl')).sort()
  if (names.length === 0) throw new Error('the folder has no *.jsonl file')
  const files: string[] = []
  for (const name of names) {
    const file = join(path, name)
    if ((await stat(file)).isFile()) files.push(await realpath(file))
    else say(`${join(place, name)}: skipped, because it is not a file`)
  }
  return files
}

async function listAllFiles(places: readonly string[], context: CommandContext): Promise<string[]> {
  const found = new Set<string>()
  for (const place of places) {
    try {
      for (const file of await listFiles(place, context)) found.add(file)
    } catch (cause) {
      const isGone = (cause as NodeJS.ErrnoException).code === 'ENOENT'
      throw usage(`${place}: ${isGone ? 'there is no such file' : errorText(cause)}`, cause)
    }
  }
  if (found.size > 0) return [...found]
  throw usage(
    'no audit file given: the arguments are lock files or not files; give the audit file, such as audit.jsonl',
  )
}

const brokenText = ({ file, line, what }: Broken) =>
  printable(`${file}${line === undefined ? '' : `:${line}`}: ${what}`)

const resultText = (broken: Broken | undefined): string => {
  if (!broken) return 'intact'
  return broken.isKeyMissing ? 'cannot be verified: no key' : 'BROKEN'
}

function chainText(report: ChainReport, isCut: boolean): string {
  const { chain, files, lines, firstSeq, lastSeq, firstTime, lastTime, signedBy, head, broken } = report
  const { lost, refused, healed, changed } = report
  const rows = [
    ['chain', chain],
    ['files', String(files.length)],
    ['lines', lines === 0 ? '0' : `${lines}, seq ${firstSeq} to ${lastSeq}`],
    ...(lines > 0 ? [['time', `${firstTime} to ${lastTime}`]] : []),
    ...(signedBy.length > 0 ? [['signed', signedBy.join(', ')]] : []),
    ...(firstSeq > 1 ? [['before', `${firstSeq - 1} lines are in files that were not given, or were removed`]] : []),
    ...(lost + refused > 0
      ? [['gaps', `${lost} lines were lost and ${refused} calls refused while the file could not be written`]]
      : []),
    ...(healed > 0 ? [['healed', `${healed} writes were interrupted by a crash or power loss`]] : []),
    ...(changed > 0 ? [['changed', `${changed} times the host detected a change to a file while it wrote`]] : []),
    ['head', head || '-'],
    ['result', isCut && !broken ? 'BROKEN: lines were cut off, here or in another chain' : resultText(broken)],
  ]
  return rows.map(([label = '', text = '']) => `${label.padEnd(8)}${printable(text)}`).join('\n')
}

async function verify(places: readonly string[], values: AuditValues, context: CommandContext): Promise<void> {
  const [first] = places
  if (first === undefined) throw usage('FILE is missing: mcp-host audit verify FILE..., or their folder')
  const { head: heads = [], 'allow-plain': allowPlain = false } = values
  const invalidHead = heads.find(head => !/^[\da-f]{64}$/.test(head))
  if (invalidHead !== undefined)
    throw usage(`--head: it is not a hash of 64 hexadecimal digits, as in "head" of the host's log`)
  const secrets = await loadSecrets(values, context)
  const signers = secrets.generated ? [] : secrets.keys('audit').map(keySigner)
  const { chains, strange, missingHeads } = await verifyTrail(await listAllFiles(places, context), {
    signers,
    allowPlain,
    heads,
  })
  const isCut = missingHeads.length > 0
  if (chains.length > 0) context.print(chains.map(chain => chainText(chain, isCut)).join('\n\n'))
  const broken = [...strange, ...chains.flatMap(({ broken }) => broken ?? [])]
  const missing = broken.length > 0 ? [] : missingHeads.map(head => `--head ${head}: no line has this hash: ${CUT}`)
  const problems = [...broken.map(brokenText), ...missing]
  if (problems.length === 0) return
  if (missing.length === 0 && broken.every(({ isKeyMissing }) => isKeyMissing)) {
    const why = secrets.generated ? NO_SECRETS : OTHER_SECRETS
    throw new StartError('MH3301', `the audit cannot be verified:\n${problems.join('\n')}\n${why}`, {
      exitCode: NO_KEY,
    })
  }
  throw new StartError('MH3302', `the audit is broken:\n${problems.join('\n')}`, { exitCode: 1 })
}

const NO_KEY = 3
const CUT = 'lines were removed from the end, or its file was not given'
const NO_SECRETS =
  'There are no secrets: set MCP_HOST_SECRETS to those of the host, or give its config with --config and --env-file.'
const OTHER_SECRETS =
  'The secrets differ from those of the file: give the secrets that the host had when it wrote the file, including old ones.'

async function who(subject: string | undefined, values: AuditValues, context: CommandContext): Promise<void> {
  if (subject === undefined) throw usage('SUBJECT is missing: mcp-host audit who SUBJECT --issuer URL')
  const secrets = await loadSecrets(values, context)
  if (secrets.generated) throw usage(NO_SECRETS)
  const { issuer, claim } = values
  const user = {
    subject,
    ...(issuer !== undefined && { issuer }),
    ...(claim !== undefined && claim !== 'sub' && { subjectClaim: claim }),
  }
  context.print(createPseudonyms(secrets.keys('records')).user(user))
}

export const auditCommand = defineCommand({
  summary: 'Verify audit files (verify FILE...), or print the pseudonym of a user (who SUBJECT)',
  example: 'verify audit.log',
  positionals: ['verify|who', '[FILE|SUBJECT...]'],
  options: OPTIONS,
  notes: `verify exits with 0 if no line has changed, 1 with the first changed line, and 3 if a key is missing. For a folder it reads its *.jsonl files.
who prints the "user" field of a subject, computed with the first secret.`,
  async run(values, [what, ...words], context) {
    if (what === 'verify') return verify(words, values, context)
    if (what === 'who') return who(words[0], values, context)
    throw usage(`unknown audit command "${what}"; use mcp-host audit verify FILE..., or mcp-host audit who SUBJECT`)
  },
})
