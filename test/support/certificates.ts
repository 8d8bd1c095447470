// Certificates that openssl makes for a test: authorities, and what they sign for 127.0.0.1 or for a client.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  /** Names of PEM files. */
  readonly cert: string
  readonly key: string
}

export interface Authority extends Certificate {
  /** A certificate that it signs; `days` is how long it is good for, and below 0 how long ago it ended. */
  issue(name: string, options?: { readonly address?: string; readonly days?: number }): Certificate
}

export interface Certificates {
  readonly folder: string
  authority(name: string): Authority
  remove(): void
}

const openssl = (...args: readonly string[]) => execFileSync('openssl', [...args], { stdio: 'pipe' })

/** As openssl takes a time: 20261123120000Z. */
const timeIn = (days: number) => `${new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]|\.\d+/g, '')}`

/** In a folder of their own. */
export function createCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  let count = 0
  const files = (name: string) => ({
    key: join(folder, `${++count}-${name}.key`),
    cert: join(folder, `${count}-${name}.pem`),
  })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

  function authority(name: string): Authority {
    const { key, cert } = files(name)
    openssl('req', '-x509', ...newKey, '-days', '2', '-subj', `/CN=${name}`, '-keyout', key, '-out', cert)
    const database = join(folder, `${name}.index`)
    const config = join(folder, `${name}.cnf`)
    writeFileSync(database, '')
    const section = [
      'default_md=sha256',
      'policy=p',
      `database=${database}`,
      `new_certs_dir=${folder}`,
      'rand_serial=yes',
      'unique_subject=no',
    ]
    writeFileSync(
      config,
      ['[ca]', 'default_ca=c', '[c]', ...section, 'copy_extensions=copy', '[p]', 'commonName=supplied', ''].join('\n'),
    )

    function issue(subject: string, { address = '127.0.0.1', days = 1 } = {}): Certificate {
      const own = files(subject)
      const request = `${own.cert}.csr`
      const names = ['-addext', `subjectAltName=IP:${address}`]
      openssl('req', '-new', ...newKey, '-subj', `/CN=${subject}`, ...names, '-keyout', own.key, '-out', request)
      const times = ['-startdate', timeIn(Math.min(days, 0) - 1), '-enddate', timeIn(days)]
      const signer = ['-config', config, '-cert', cert, '-keyfile', key]
      openssl('ca', '-batch', '-notext', ...signer, ...times, '-in', request, '-out', own.cert)
      return own
    }
    return { key, cert, issue }
  }
  return { folder, authority, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
