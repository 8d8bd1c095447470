// What an operator sees of the bridge in figures: people who sign in, logins that are asked about again, and what came twice.
import type { PluginHost } from '../../core/index.ts'
import type { UpstreamFault } from './upstream/upstream.ts'

const SIGN_INS = {
  name: 'mcp_host_bridge_sign_ins_total',
  help: 'Logins that came back from the identity provider: ok, not_allowed by the config, or what failed.',
  labels: ['outcome'],
}
const RENEWALS = {
  name: 'mcp_host_bridge_renewals_total',
  help: 'Questions whether a person may still sign in: renewed, ended, or unasked where the provider did not say.',
  labels: ['outcome'],
}
const REPLAYS = {
  name: 'mcp_host_bridge_replays_total',
  help: 'Codes and refresh tokens that came again after they were used up.',
  labels: ['model'],
}

export interface BridgeFigures {
  signedIn(outcome: 'ok' | 'not_allowed' | UpstreamFault): void
  renewed(outcome: 'renewed' | 'ended' | 'unasked'): void
  replayed(model: string): void
}

export function createFigures({ figures }: Pick<PluginHost, 'figures'>): BridgeFigures {
  const signIns = figures.counter(SIGN_INS)
  const renewals = figures.counter(RENEWALS)
  const replays = figures.counter(REPLAYS)
  return {
    signedIn: outcome => signIns(1, { outcome }),
    renewed: outcome => renewals(1, { outcome }),
    replayed: model => replays(1, { model }),
  }
}
