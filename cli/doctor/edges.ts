// What the server does at its edge: which Host and Origin it lets in, and what it tells browsers.
import { isLoopback } from '../../core/auth.ts'
import { ask, message } from './ask.ts'
import { type Finding, note, ok, wrong } from './finding.ts'
import type { Patient } from './patient.ts'

const FOREIGN = 'doctor.invalid'

/** Behind a proxy a foreign name may never reach the host; then any refusal will do. */
export async function checkGuard({ url, first }: Patient): Promise<Finding[]> {
  const local = isLoopback(new URL(url).hostname)
  const [host, origin] = await Promise.all([
    ask(url, message('tools/list', {}, { Host: FOREIGN })),
    ask(url, message('tools/list', {}, { Origin: `https://${FOREIGN}` })),
  ])
  const lets = (status: number) => status === first.status
  const rebound = 'set http.publicUrl or http.allowedHosts: then no other name is served'
  const findings = [
    !lets(host.status)
      ? ok('host guard', `a foreign Host is answered ${host.status}`)
      : local
        ? wrong('host guard', 'a foreign Host is served: a page can reach this server under its own name', rebound)
        : note('host guard', 'a foreign Host is served', rebound),
    lets(origin.status)
      ? wrong(
          'host guard',
          'a page of any origin is served',
          'list origins in http.allowedOrigins or in a policy of cors',
        )
      : ok('host guard', `a foreign Origin is answered ${origin.status}`),
  ]
  return findings
}

/** What browsers of 2026-07-28 and of older clients send. */
const SENT = [
  'Authorization',
  'Content-Type',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Mcp-Session-Id',
  'Last-Event-ID',
]
const READ = ['WWW-Authenticate', 'Mcp-Session-Id']

const words = (header: string | undefined) => new Set((header ?? '').toLowerCase().split(/\s*,\s*/))
const lacking = (wanted: readonly string[], header: string | undefined) => {
  const has = words(header)
  // A wildcard never covers Authorization (Fetch, "CORS-unsafe request-header names").
  return wanted.filter(name => !has.has(name.toLowerCase()) && !(has.has('*') && name !== 'Authorization'))
}

/** Whether a page of `origin` can call. Where none was named it may well be that none should. */
export async function checkCors({ url, origin: named }: Patient): Promise<Finding[]> {
  const origin = named ?? new URL(url).origin
  const preflight = await ask(url, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': SENT.join(',').toLowerCase(),
    },
  })
  const allowed = preflight.headers['access-control-allow-origin']
  if (allowed !== '*' && allowed !== origin) {
    const text = `no page of ${origin} may call: its preflight is answered ${preflight.status}`
    const fix = 'give the route a `cors` policy that lists the origin'
    return [
      named === undefined ? note('cors', `${text}; --origin asks for another page`, fix) : wrong('cors', text, fix),
    ]
  }
  const findings: Finding[] = []
  const headers = lacking(SENT, preflight.headers['access-control-allow-headers'])
  if (headers.length > 0)
    findings.push(
      wrong(
        'cors',
        `the preflight does not allow ${headers.join(', ')}`,
        'let the plugin cors answer it: it knows what MCP needs',
      ),
    )
  if (lacking(['POST'], preflight.headers['access-control-allow-methods']).length > 0)
    findings.push(
      wrong('cors', 'the preflight does not allow POST', 'let the plugin cors answer it: it knows what MCP needs'),
    )
  const answer = await ask(url, message('tools/list', {}, { Origin: origin }))
  if (answer.headers['access-control-allow-origin'] === undefined)
    findings.push(
      wrong(
        'cors',
        `the answer itself (${answer.status}) has no CORS header: the page cannot read it`,
        'let the proxy pass it on, on errors too',
      ),
    )
  const hidden = lacking(READ, answer.headers['access-control-expose-headers'])
  if (hidden.length > 0)
    findings.push(
      wrong(
        'cors',
        `the page cannot read ${hidden.join(', ')}`,
        'let Access-Control-Expose-Headers name them; the plugin cors does',
      ),
    )
  return findings.length > 0 ? findings : [ok('cors', `a page of ${origin} may call`)]
}
