// The start of a host: once, and before its end. For host.ts.
import type { ServerResponse } from 'node:http'
import { HostError, StartError } from './http/errors.ts'
import { loadNeededParser } from './kernel/body.ts'
import type { InFlight } from './kernel/in-flight.ts'
import type { Logger } from './kernel/log.ts'
import { loadNeededCompiler } from './mcp/schema/load-ajv.ts'
import { encodeError } from './mcp/wire.ts'

/** `run`: what starts. */
export function createLife(run: () => Promise<void>, { draining }: Pick<InFlight, 'draining'>) {
  let starting: Promise<void> | undefined
  let started = false
  return {
    hasStarted: () => started,
    async start() {
      if (draining()) throw new StartError('the host is closed; make another with createHost')
      starting ??= run()
      await starting
      started = true
    },
  }
}

/** Answers what comes before the start. */
export async function refuseEarly(res: ServerResponse, log: Logger) {
  log.warn({}, 'a request came before the host was started: call start(), and wait for it, before the first')
  const error = new HostError('unavailable', { detail: 'the server is starting' })
  res.writeHead(error.status, { 'Content-Type': 'application/json', 'Retry-After': '1' }).end(encodeError(error))
}

/** Milliseconds: what is still done for the start comes first. */
const AHEAD_AFTER = 100

/** Loads, a moment after the host listens, what its first calls would otherwise wait for. */
export function loadAhead(log: Logger) {
  const load = async () => {
    try {
      loadNeededCompiler()
      await loadNeededParser()
    } catch (err) {
      log.error({ err }, 'a package that reads requests cannot be loaded, so requests fail: install mcp-host again')
    }
  }
  setTimeout(load, AHEAD_AFTER).unref()
}
