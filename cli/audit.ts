// `mcp-host audit verify FILE...`: whether an audit is as it was written; `mcp-host audit who SUBJECT`: what stands for a
// person in it. The files are read, nothing is served, and no secret is shown.
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { printable } from '../client/printable.ts'
import { loadConfig } from '../core/create-host.ts'
import { errorText, StartError } from '../core/http/errors.ts'
import { isObject } from '../core/index.ts'
import { createSecrets, type Secrets } from '../core/kernel/secrets.ts'
import { createDisguise } from '../core/mcp/disguise.ts'
import { keySigner } from '../plugins/audit/chain.ts'
import { type Broken, type ChainReport, verifyTrail } from '../plugins/audit/verify-trail.ts'
import { createEnvFiles } from './env-file.ts'
import { CONFIG_OPTION, defineVerb, ENV_FILE_OPTION, type VerbValues } from './verb.ts'

const OPTIONS = {
  config: { ...CONFIG_OPTION.config, help: 'whose secrets the audit has; default: those of MCP_HOST_SECRETS' },
  ...ENV_FILE_OPTION,
  head: {
    type: 'string',
    value: '<hash>',
    multiple: true,
    help: "verify: a hash that the host's log told; without one, lines that were cut off the end are not missed",
  },
  'allow-plain': { type: 'boolean', help: 'verify: believe files that were written while there were no secrets' },
  issuer: { type: 'string', value: '<url>', help: 'who: the issuer of the subject, as in its token' },
  claim: { type: 'string', value: '<name>', help: 'who: the claim that the subject is the value of; default: sub' },
} as const

type AuditValues = VerbValues<typeof OPTIONS>

const stop = (what: string, cause?: unknown) => new StartError(what, { exitCode: 2, cause })

/** The secrets of the config that was named, else those of the environment. */
async function secretsOf({ config, 'env-file': files = [] }: AuditValues): Promise<Secrets> {
  createEnvFiles(() => files).load()
  const loaded = config === undefined ? undefined : await loadConfig({ cwd: process.cwd(), file: config })
  const written = isObject(loaded?.config) ? loaded.config['secrets'] : undefined
  // As the host takes them: without the line break that a file ends with.
  const given = Array.isArray(written)
    ? written.map(secret => (typeof secret === 'string' ? secret.replace(/[\r\n]+$/, '') : undefined))
    : []
  return createSecrets(given, process.env['MCP_HOST_SECRETS'])
}

/** The files, and those of folders whose names end with `.jsonl`, each once. */
async function filesOf(places: readonly string[]): Promise<string[]> {
  const found = new Set<string>()
  for (const place of places) {
    try {
      const isFolder = (await stat(place)).isDirectory()
      const names = isFolder ? (await readdir(place)).filter(name => name.endsWith('.jsonl')).sort() : []
      if (isFolder && names.length === 0) throw new Error('the folder has no *.jsonl file')
      for (const file of isFolder ? names.map(name => join(place, name)) : [place]) found.add(await realpath(file))
    } catch (cause) {
      const isGone = (cause as NodeJS.ErrnoException).code === 'ENOENT'
      throw stop(`${place}: ${isGone ? 'there is no such file' : errorText(cause)}`, cause)
    }
  }
  return [...found]
}

const brokenText = ({ file, line, what }: Broken) => `${file}${line === undefined ? '' : `:${line}`}: ${what}`

function chainText(report: ChainReport): string {
  const { chain, files, lines, firstSeq, lastSeq, firstTime, lastTime, signedBy, lost, refused, healed, head, broken } =
    report
  const rows = [
    ['chain', chain],
    ['files', String(files.length)],
    ['lines', lines === 0 ? '0' : `${lines}, seq ${firstSeq} to ${lastSeq}`],
    ['time', `${firstTime} to ${lastTime}`],
    ['signed', signedBy.join(', ') || 'by nothing that is known'],
    ...(firstSeq > 1 ? [['before', `${firstSeq - 1} lines stand in files that were not given, or were removed`]] : []),
    ...(lost + refused > 0
      ? [['gaps', `${lost} lines were lost and ${refused} calls refused while it could not be written`]]
      : []),
    ...(healed > 0 ? [['healed', `${healed} times a process was killed while it wrote`]] : []),
    ['head', head || '-'],
    ['result', broken ? 'BROKEN' : 'whole'],
  ]
  return rows.map(([label = '', text = '']) => `${label.padEnd(8)}${printable(text)}`).join('\n')
}

async function verify(places: readonly string[], values: AuditValues): Promise<void> {
  const [first] = places
  if (first === undefined) throw stop('FILE is missing: mcp-host audit verify FILE..., or the folder that they are in')
  const { head: heads = [], 'allow-plain': allowPlain = false } = values
  const strangeHead = heads.find(head => !/^[\da-f]{64}$/.test(head))
  if (strangeHead !== undefined)
    throw stop(`--head: it is no hash; one has 64 hexadecimal digits, as in "head" of the host's log`)
  const secrets = await secretsOf(values)
  const signers = secrets.generated ? [] : secrets.keys('audit').map(keySigner)
  const { chains, strange, missingHeads } = await verifyTrail(await filesOf(places), { signers, allowPlain, heads })
  if (chains.length > 0) console.log(chains.map(chainText).join('\n\n'))
  const broken = [...strange, ...chains.flatMap(({ broken }) => broken ?? [])]
  const missing = broken.length > 0 ? [] : missingHeads.map(head => `--head ${head}: no line has it: ${CUT}`)
  const problems = [...broken.map(brokenText), ...missing]
  if (problems.length === 0) return
  const hint =
    secrets.generated && broken.some(({ line, what }) => line === undefined && what.includes('key'))
      ? `\n${NO_SECRETS}`
      : ''
  throw new StartError(`the audit is broken:\n${problems.join('\n')}${hint}`, { exitCode: hint === '' ? 1 : 2 })
}

const CUT = 'lines were cut off the end, or the file that had it is not among those given'
const NO_SECRETS =
  'No secrets are known: put those of the host into MCP_HOST_SECRETS, or name its config with --config.'

async function who(subject: string | undefined, values: AuditValues): Promise<void> {
  if (subject === undefined) throw stop('SUBJECT is missing: mcp-host audit who SUBJECT --issuer URL')
  const secrets = await secretsOf(values)
  if (secrets.generated) throw stop(NO_SECRETS)
  const { issuer, claim } = values
  const user = {
    subject,
    ...(issuer !== undefined && { issuer }),
    ...(claim !== undefined && claim !== 'sub' && { subjectClaim: claim }),
  }
  console.log(createDisguise(secrets.keys('records')).user(user))
}

async function audit(values: AuditValues, [what, ...words]: readonly string[]): Promise<void> {
  if (what === 'verify') return verify(words, values)
  if (what === 'who') return who(words[0], values)
  throw stop(`"${what}": it is one of: mcp-host audit verify FILE..., mcp-host audit who SUBJECT`)
}

export const auditVerb = defineVerb({
  summary: 'verify FILE...: whether an audit was changed; who SUBJECT: what stands for a person in it',
  positionals: ['verify|who', '[FILE|SUBJECT...]'],
  options: OPTIONS,
  notes: `verify exits 0 where every line is as it was written, and 1 with the first place that is not. A folder stands for its *.jsonl files.
who prints what lines have as "user" for a subject of an issuer, with the first of the secrets.`,
  run: audit,
})
