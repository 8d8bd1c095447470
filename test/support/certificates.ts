// Creates certificate authorities and certificates with `openssl`, with any names and validity.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from 'mocha'
import { needsProgram } from './needs-program.ts'

export const needsOpenssl = (context: Context) => needsProgram(context, 'openssl', 'apt-get install openssl')

/** PEM of a key and of its certificate. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

export interface CertificateSettings {
  /** Subject alternative names in openssl syntax. Default: this machine. */
  readonly names?: string
  readonly subject?: string
  /** Validity in days from now. Default: yesterday to 30. */
  readonly days?: readonly [from: number, to: number]
  /** It can sign other certificates. */
  readonly isAuthority?: boolean
  /** Additional extension lines. */
  readonly more?: readonly string[]
}

/** A key pair that is also stored in files. */
export interface Signed extends Pair {
  /** The file names. */
  readonly files: Pair
}

export interface Authority extends Signed {
  sign(settings?: CertificateSettings): Signed
  /** An authority signed by this one. */
  authority(subject: string): Authority
}

const DAY = 24 * 60 * 60 * 1_000
const HERE = 'DNS:localhost,IP:127.0.0.1,IP:::1'

/** `YYMMDDHHMMSSZ`. */
const timeOf = (days: number) =>
  `${new Date(Date.now() + days * DAY).toISOString().slice(2, 19).replaceAll(/\D/g, '')}Z`

const openssl = (...args: string[]) => void execFileSync('openssl', args, { stdio: 'pipe' })

const folders: string[] = []

/** A folder that `removeTlsFolders` removes. */
export function tlsFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tls-'))
  folders.push(folder)
  return folder
}

export const removeTlsFolders = () => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}

const readFiles = (files: Pair): Signed => ({
  cert: readFileSync(files.cert, 'utf8'),
  key: readFileSync(files.key, 'utf8'),
  files,
})

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

const SIGNING = (folder: string) => `[ca]
default_ca = own
[own]
database = ${folder}/index
new_certs_dir = ${folder}
rand_serial = yes
unique_subject = no
default_md = sha256
policy = named
copy_extensions = none
[named]
commonName = supplied
`

function authorityIn(folder: string, pair: Pair): Authority {
  const [key, cert, config] = ['ca.key', 'ca.pem', 'ca.conf'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(key, pair.key)
  writeFileSync(cert, pair.cert)
  writeFileSync(config, SIGNING(folder))
  writeFileSync(join(folder, 'index'), '')
  let count = 0

  function sign({
    names = HERE,
    subject = 'a test',
    days = [-1, 30],
    isAuthority,
    more = [],
  }: CertificateSettings = {}) {
    const own = join(folder, String(++count))
    mkdirSync(own)
    const [ownKey, request, signed, extensions] = ['key', 'csr', 'cert', 'ext'].map(name => join(own, name)) as [
      string,
      string,
      string,
      string,
    ]
    openssl('req', '-new', ...NEW_KEY, '-subj', `/CN=${subject}`, '-keyout', ownKey, '-out', request)
    const kind = isAuthority
      ? ['basicConstraints = critical, CA:TRUE']
      : names === ''
        ? []
        : [`subjectAltName = ${names}`]
    writeFileSync(extensions, ['[default]', 'subjectKeyIdentifier = hash', ...kind, ...more].join('\n'))
    const when = ['-startdate', timeOf(days[0]), '-enddate', timeOf(days[1])]
    const files = ['-in', request, '-out', signed, '-keyfile', key, '-cert', cert, '-extfile', extensions]
    openssl('ca', '-batch', '-notext', '-config', config, ...when, '-extensions', 'default', ...files)
    return readFiles({ cert: signed, key: ownKey })
  }

  return {
    ...pair,
    files: { cert, key },
    sign,
    authority: subject => authorityIn(tlsFolder(), sign({ subject, isAuthority: true })),
  }
}

/** A self-signed authority. */
export function makeAuthority(subject = 'a test authority'): Authority {
  const folder = tlsFolder()
  const [key, cert] = [join(folder, 'root.key'), join(folder, 'root.pem')]
  openssl('req', '-x509', ...NEW_KEY, '-days', '30', '-subj', `/CN=${subject}`, '-keyout', key, '-out', cert)
  return authorityIn(folder, readFiles({ cert, key }))
}

/** For `before`: creates an authority and a pair that it signed. Skips the suite if `openssl` is missing. */
export function certify(context: Context, settings?: CertificateSettings) {
  needsOpenssl(context)
  const authority = makeAuthority()
  return { authority, pair: authority.sign(settings) }
}
