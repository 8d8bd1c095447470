// A certificate, its key and what signed it, checked before they are served: what clients would refuse, or Node, is said in
// words. For core/http-tls.ts and renewal.ts.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { type GivenPem, type PemTexts, readPems } from './pem.ts'
import { type Report, reporting, StartError } from './start-error.ts'

/** When an end is near: whoever renews in time has done so before. Of a short life it is the last third. Milliseconds. */
const SOON = 7 * 24 * 60 * 60 * 1_000

export interface TlsTerms {
  readonly passphrase: string | undefined
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
}

/** What is served, and what people want to know of it. */
export interface Certificate {
  /** For a server's secure context. */
  readonly context: {
    readonly cert: string
    readonly key: string
    readonly passphrase: string | undefined
    readonly ca: string | undefined
    readonly minVersion: TlsTerms['minVersion']
  }
  /** As they were read. */
  readonly texts: PemTexts
  /** On one line. */
  readonly subject: string
  /** Whom it is for: host names and addresses. */
  readonly names: readonly string[]
  readonly ends: Date
  /** From then on it should have been renewed. */
  readonly due: Date
}

const at = (key: string) => ({ at: ['http', 'tls', key] })
const CERTIFICATES = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

const dayOf = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z')
const lineOf = (subject: string | undefined): string => subject?.split('\n').join(', ') || '(no subject)'

/** `DNS:a.example, IP Address:192.0.2.1` as names. */
const namesOf = ({ subjectAltName = '' }: X509Certificate): string[] =>
  subjectAltName.split(', ').flatMap(entry => /^(?:DNS|IP Address):"?([^"]+)"?$/.exec(entry)?.[1] ?? [])

/** Throws a StartError for what holds no certificate, or a broken one. */
function parseAll(key: 'cert' | 'clientCa', text: string): [X509Certificate, ...X509Certificate[]] {
  const found = (text.match(CERTIFICATES) ?? []).map((block, index) => {
    try {
      return new X509Certificate(block)
    } catch (cause) {
      throw new StartError(`certificate ${index + 1} of its file is broken: it is cut, or was changed`, {
        ...at(key),
        cause,
      })
    }
  })
  const [first, ...rest] = found
  if (first) return [first, ...rest]
  const hint = /PRIVATE KEY/.test(text) ? ' but a private key, which belongs into http.tls.key' : ''
  throw new StartError(`its PEM holds no certificate${hint}`, at(key))
}

/** Throws a StartError for what cannot be opened. */
function openKey(text: string, passphrase: string | undefined): KeyObject {
  if (!/PRIVATE KEY/.test(text)) throw new StartError('its PEM holds no private key', at('key'))
  try {
    return createPrivateKey({ key: text, ...(passphrase !== undefined && { passphrase }) })
  } catch (cause) {
    const isLocked = /ENCRYPTED/.test(text)
    if (!isLocked)
      throw new StartError('the key is broken: it is cut, or of a kind that is not known', { ...at('key'), cause })
    const why =
      passphrase === undefined
        ? 'the key is encrypted: give http.tls.passphrase, too'
        : 'http.tls.passphrase does not open the key'
    throw new StartError(why, { ...at(passphrase === undefined ? 'key' : 'passphrase'), cause })
  }
}

/** Throws a StartError where it does not fit the first of them, which is the one that is served. */
function assertFits([first, ...rest]: readonly [X509Certificate, ...X509Certificate[]], key: KeyObject): void {
  if (first.checkPrivateKey(key)) return
  const place = rest.findIndex(certificate => certificate.checkPrivateKey(key))
  const why =
    place === -1
      ? `the key does not fit the certificate of http.tls.cert (${lineOf(first.subject)})`
      : `the certificate that fits http.tls.key is number ${place + 2} of its file: put it first, then what signed it, in order`
  throw new StartError(why, at(place === -1 ? 'key' : 'cert'))
}

/** Whether clients that ask for this name accept it. A name among the subject alone counts for nobody any more. */
const isFor = (certificate: X509Certificate, name: string): boolean =>
  (isIP(name) === 0 ? certificate.checkHost(name, { subject: 'never' }) : certificate.checkIP(name)) !== undefined

/** When it holds. */
function lifeOf({ validFrom, validTo }: X509Certificate) {
  const [begins, ends] = [new Date(validFrom), new Date(validTo)]
  const soon = Math.min(SOON, (ends.getTime() - begins.getTime()) / 3)
  return { begins, ends, due: new Date(ends.getTime() - soon) }
}

/** Why no client accepts it now; undefined where its time is. */
function notNow(certificate: X509Certificate, now: number): string | undefined {
  const { begins, ends } = lifeOf(certificate)
  if (begins.getTime() > now) return `holds only from ${dayOf(begins)}; is this clock right?`
  return ends.getTime() <= now ? `has ended, on ${dayOf(ends)}: clients refuse it` : undefined
}

/** Why no client accepts what is served now; undefined where its time is. */
export function untimely({ context }: Certificate, now = Date.now()): StartError | undefined {
  const [first] = parseAll('cert', context.cert)
  const fault = notNow(first, now)
  return fault === undefined ? undefined : new StartError(`the certificate ${fault}`, at('cert'))
}

/** What a certificate says of when it holds that is to be told. */
function timeFault(certificate: X509Certificate, now: number): string | undefined {
  const fault = notNow(certificate, now)
  if (fault !== undefined) return fault
  const { ends, due } = lifeOf(certificate)
  return due.getTime() <= now ? `ends on ${dayOf(ends)}: renew it` : undefined
}

/** What is no mistake of the start, but of a chain. */
function chainFaults(chain: readonly X509Certificate[], now: number): string[] {
  const [first] = chain
  const order = chain.slice(1).flatMap((signer, index) => {
    const signed = chain[index] as X509Certificate
    const place = `certificate ${index + 2} of its file (${lineOf(signer.subject)})`
    const fault = timeFault(signer, now)
    return [
      ...(signed.checkIssued(signer)
        ? []
        : [`${place} has not signed the one before it: each is to be signed by the next`]),
      ...(fault === undefined ? [] : [`${place} ${fault}`]),
    ]
  })
  // Authorities that everybody knows sign by others, and say where theirs are.
  const isAlone = chain.length === 1 && /CA Issuers/.test(first?.infoAccess ?? '')
  const alone =
    'its file holds one certificate, and not those that signed it: name the whole chain, such as fullchain.pem'
  return [...order, ...(isAlone ? [alone] : [])]
}

/** What clients will not like. `name`: what they ask for; undefined where nobody knows. */
export function faultsOf({ context }: Certificate, name: string | undefined, now = Date.now()): StartError[] {
  const chain = parseAll('cert', context.cert)
  const [first] = chain
  const time = timeFault(first, now)
  const names = namesOf(first)
  const isNamed = name === undefined || isFor(first, name)
  const whose = names.length === 0 ? 'for no name' : `for ${names.slice(0, 10).join(', ')}`
  return [
    ...(time === undefined ? [] : [`the certificate ${time}`]),
    ...(isNamed ? [] : [`the certificate is ${whose}, and clients that ask for ${name} refuse it`]),
    ...chainFaults(chain, now),
  ].map(text => new StartError(text, at('cert')))
}

/** What Node still refuses, such as a key that is too short. */
function assertServed(context: Certificate['context']): void {
  const { passphrase, ca, ...rest } = context
  try {
    createSecureContext({ ...rest, ...(passphrase !== undefined && { passphrase }), ...(ca !== undefined && { ca }) })
  } catch (cause) {
    throw new StartError(`TLS cannot be served with it: ${(cause as Error).message}`, { ...at('cert'), cause })
  }
}

/** What can be served of these texts; undefined where something cannot, which is reported. */
function certificateOf(texts: PemTexts, { passphrase, minVersion }: TlsTerms, report: Report): Certificate | undefined {
  const { cert = '', key = '', clientCa: ca } = texts
  const chain = reporting(report, () => parseAll('cert', cert))
  const opened = reporting(report, () => openKey(key, passphrase))
  const known = ca === undefined || reporting(report, () => parseAll('clientCa', ca))
  if (!chain || !opened || !known) return undefined
  const context = { cert, key, passphrase, ca, minVersion }
  return reporting(report, () => {
    assertFits(chain, opened)
    assertServed(context)
    const [first] = chain
    const { ends, due } = lifeOf(first)
    return { context, texts, subject: lineOf(first.subject), names: namesOf(first), ends, due }
  })
}

/** Reads and checks what the config names: undefined where it cannot be served, and all that is wrong is reported. */
export async function readCertificate(
  given: GivenPem & TlsTerms,
  directory: string,
  report: Report,
): Promise<Certificate | undefined> {
  let isWhole = true
  const texts = await readPems(given, directory, mistake => {
    isWhole = false
    report(mistake)
  })
  // Without what signs clients' certificates, anybody would be let in.
  return isWhole ? certificateOf(texts, given, report) : undefined
}

/** The same pair behind other authorities of clients: undefined where those cannot be served, which is reported. */
export function withClientCa(current: Certificate, clientCa: string, report: Report): Certificate | undefined {
  const context = { ...current.context, ca: clientCa }
  return reporting(report, () => {
    parseAll('clientCa', clientCa)
    assertServed(context)
    return { ...current, context, texts: { ...current.texts, clientCa } }
  })
}
