// A bridge for real clients: `whoami` for the scope `read`, `clear_all` for `admin` too, which Ann may have and Bob may not.
import { defineTool } from '../../../core/index.ts'
import { type BridgeSettings, type StartedBridge, startBridge } from '../../support/bridge.ts'

const tool = (name: string) =>
  defineTool({
    name,
    handler: (_, { user }) => ({ subject: user?.subject, issuer: user?.issuer, client: user?.clientId }),
  })

const USERS = [
  { sub: 'ann', name: 'Ann Example', email: 'ann@acme.example', groups: ['engineering'] },
  { sub: 'bob', name: 'Bob Example', email: 'bob@acme.example', groups: ['sales'] },
]

/** `accessToken`: the lifetime of an access token, without tolerance. */
export const startWithScopes = (
  accessToken: string,
  { idp = { users: USERS }, config, clock }: Pick<BridgeSettings, 'idp' | 'config' | 'clock'> = {},
): Promise<StartedBridge> =>
  startBridge({
    idp,
    ...(clock && { clock }),
    options: { accessToken },
    config: {
      toolsets: { all: [tool('whoami'), tool('clear_all')] },
      routes: {
        '/mcp': { toolsets: 'all', authorize: { scope: 'read' } },
        // Its challenges name no scope: clients ask for all that the metadata promises.
        '/at-once': { toolsets: 'all', authorize: true },
      },
      ...config,
    },
    plugins: {
      'auth-jwt': { clockTolerance: '0s' },
      'tool-policy': { rules: { clear_all: { policy: { scope: 'admin' }, visibility: 'listed' } } },
    },
  })
