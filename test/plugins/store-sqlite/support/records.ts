// Records of sessions for tests.
import type { SessionLimits, SessionRecord } from '../../../../core/transport.ts'

export const BOUNDS_OF_SESSIONS: SessionLimits = {
  idleTimeout: 60_000,
  maxIdle: 1_000,
  maxPerOwner: undefined,
  maxCallsPerSession: 1_000,
  maxCallsPerOwner: 1_000,
}

export const recordOf = (home: string, holder = 'ada'): SessionRecord => ({
  opening: { transport: 'streamable', route: '/', params: {}, holder, user: undefined, ip: '127.0.0.1', headers: {} },
  state: { revision: undefined, client: { info: undefined, capabilities: {} }, logLevel: 'info', watched: [] },
  version: 1,
  home,
})
