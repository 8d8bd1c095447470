// A certificate, for localhost unless it is said, that a test makes for itself; a process that the test starts can be told to trust it.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Running, startCli } from '../../cli/run-cli.ts'

/** A key and a certificate, signed by itself, made by `openssl` in `folder`. `names`: of whom, as openssl has them. */
export function makeCertificate(folder: string, names = 'DNS:localhost') {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${names}`]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert], { stdio: 'pipe' })
  return { key: readFileSync(key), cert: readFileSync(cert), file: cert }
}

/** Runs `mcp-host ...args` in `folder` with one more certificate to trust. */
export function startTrusting(certificate: string, args: readonly string[], folder: string): Running {
  const before = process.env['NODE_EXTRA_CA_CERTS']
  process.env['NODE_EXTRA_CA_CERTS'] = certificate
  try {
    return startCli(args, folder)
  } finally {
    if (before === undefined) delete process.env['NODE_EXTRA_CA_CERTS']
    else process.env['NODE_EXTRA_CA_CERTS'] = before
  }
}
