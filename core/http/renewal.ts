// A certificate that is renewed on disk, by whatever program: looked for every few seconds, and served from then on where it
// is whole. Connections that are open go on.
import { isDeepStrictEqual } from 'node:util'
import { type Certificate, faultsOf, readCertificate, type TlsTerms, untimely, withClientCa } from './certificate.ts'
import { type GivenPem, type PemTexts, readPems } from './pem.ts'
import { contextOf } from './secure-server.ts'
import type { StartError } from './start-error.ts'

/**
 * How often the files are read, milliseconds. Reading them asks nothing of the file system that some of them do not tell, such
 * as events of folders that were swapped, and three small files cost nothing.
 */
const LOOK_INTERVAL = 2_000
/** What differs is taken when it is the same so much later: whoever writes may not be done. */
const SETTLE_TIME = 300
/** How often it is said that the end is near, milliseconds. */
const REMIND_INTERVAL = 24 * 60 * 60 * 1_000

export type GivenTls = GivenPem & TlsTerms

export interface RenewalNews {
  /** `faults`: what clients will not like about it. */
  took(certificate: Certificate, faults: readonly StartError[]): void
  /** Other authorities of clients are served, with the pair of before. */
  tookClientCa(certificate: Certificate): void
  /** What is there by now cannot be served. Once for each state of the files. */
  kept(certificate: Certificate, problems: readonly StartError[]): void
  /** It ends soon, or has, and nothing newer is there. */
  ends(certificate: Certificate): void
}

export interface RenewalSettings {
  /** Gives it to the server. */
  serve(context: ReturnType<typeof contextOf>): void
  readonly directory: string
  /** What clients ask for; undefined where nobody knows. */
  readonly name: string | undefined
  readonly news: RenewalNews
}

export interface Renewal {
  /** What is served now. */
  readonly current: () => Certificate
  /** Serves this from now on, as a newer config names it; false where it is what was served before. */
  take(given: GivenTls, certificate: Certificate): boolean
  /** Looks for newer files until the returned function is called. */
  watch(): () => void
}

export function createRenewal(given: GivenTls, first: Certificate, settings: RenewalSettings): Renewal {
  const { directory, name, news } = settings
  let named = given
  let current = first
  /** What was found at the last look, where it is not what is served. */
  let found: PemTexts | undefined
  /** What was told of what cannot be taken. */
  let told = ''
  let reminded = Date.now()

  function use(certificate: Certificate) {
    settings.serve(contextOf(certificate))
    current = certificate
  }

  function serve(certificate: Certificate) {
    use(certificate)
    found = undefined
    told = ''
    reminded = Date.now()
  }

  function keep(problems: readonly StartError[]) {
    const text = problems.map(({ message }) => message).join('\n')
    if (text !== told) news.kept(current, problems)
    told = text
  }

  /** Who may come does not wait for a pair that fits: an authority that was removed is gone. */
  function takeClientCa(clientCa: string | undefined, problems: StartError[]) {
    if (clientCa === undefined || clientCa === current.texts.clientCa) return
    const certificate = withClientCa(current, clientCa, problem => {
      if (!problems.some(({ message }) => message === problem.message)) problems.push(problem)
    })
    if (!certificate) return
    use(certificate)
    news.tookClientCa(certificate)
  }

  /** Serves what is there by now; it is read once more, so that nothing comes between what was compared and what is checked. */
  async function renew(asked: GivenTls, { clientCa }: PemTexts) {
    const problems: StartError[] = []
    const certificate = await readCertificate(asked, directory, problem => problems.push(problem))
    if (asked !== named) return
    const late = certificate && untimely(certificate)
    // One that no client accepts does not replace one that they do.
    if (late && !untimely(current)) problems.push(late)
    if (!certificate || problems.length > 0) {
      takeClientCa(clientCa, problems)
      return keep(problems)
    }
    if (isDeepStrictEqual(certificate.texts, current.texts)) return
    serve(certificate)
    news.took(certificate, faultsOf(certificate, name))
  }

  /** True where it is to be looked again soon. */
  async function look(): Promise<boolean> {
    const asked = named
    const problems: StartError[] = []
    const texts = await readPems(asked, directory, problem => problems.push(problem))
    // Of a newer config meanwhile, something else is to be looked at.
    if (asked !== named) return false
    const before = found
    found = isDeepStrictEqual(texts, current.texts) ? undefined : texts
    if (!found) told = ''
    else if (!isDeepStrictEqual(found, before)) return true
    else await renew(asked, found)
    return false
  }

  function remind() {
    const now = Date.now()
    if (now < current.due.getTime() || now - reminded < REMIND_INTERVAL) return
    reminded = now
    news.ends(current)
  }

  return {
    current: () => current,
    take(newer, certificate) {
      named = newer
      const isSame = isDeepStrictEqual(certificate.context, current.context)
      if (!isSame) serve(certificate)
      return !isSame
    },
    watch: () =>
      again(LOOK_INTERVAL, async () => {
        remind()
        const isSoon = await look().catch(error => keep([error]))
        return isSoon ? SETTLE_TIME : LOOK_INTERVAL
      }),
  }
}

/** Runs the task after so many milliseconds, and again after those that it gives, until the returned function is called. */
function again(patience: number, task: () => Promise<number>): () => void {
  let over = false
  let timer: NodeJS.Timeout | undefined
  const wait = (time: number) => {
    if (!over) timer = setTimeout(() => void task().then(wait), time).unref()
  }
  wait(patience)
  return () => {
    over = true
    clearTimeout(timer)
  }
}
