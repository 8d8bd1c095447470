// A host with protected routes, and a client that sends a token.
import { defineTool } from '../../core/index.ts'
import { modern, type RpcAnswer } from './rpc.ts'
import { type StartedHost, type StartOptions, startHost, type TestConfig } from './start-host.ts'

/** Returns the caller that the host identified. */
const whoami = defineTool({ name: 'whoami', handler: (_, { user }) => ({ user: user ?? null }) })

export interface ProtectedHost extends StartedHost {
  /** The URL of `/guarded`, which requires a user; `/open` does not, `/writers` requires the scope `write`. */
  readonly guarded: string
  readonly open: string
  readonly writers: string
}

/** The three routes, with these plugins in addition to the transport. */
export async function startProtected(
  plugins: NonNullable<TestConfig['plugins']>,
  more: Partial<TestConfig> = {},
  options: StartOptions = {},
) {
  const config: TestConfig = {
    toolsets: { all: [whoami] },
    routes: {
      '/guarded': { toolsets: 'all', authorize: true, stateless: true },
      '/open': { toolsets: 'all' },
      '/writers': { toolsets: 'all', authorize: { scope: 'write' } },
    },
    ...more,
    plugins: { 'transport-streamable': {}, ...plugins },
  }
  const started = await startHost(config, undefined, options)
  const { url } = started
  return { ...started, guarded: `${url}/guarded`, open: `${url}/open`, writers: `${url}/writers` } as ProtectedHost
}

/** Calls `whoami`. */
export const callAs = (url: string, token: string | undefined): Promise<RpcAnswer> =>
  callWith(url, token === undefined ? {} : { Authorization: `Bearer ${token}` })

export const callWith = (url: string, headers: Record<string, string>): Promise<RpcAnswer> =>
  modern(url, 'tools/call', { name: 'whoami' }, { headers })

/** The user in the result of `whoami`. */
export const readUser = ({ message }: RpcAnswer) => message.result.structuredContent.user

export const challengeHeader = ({ headers }: RpcAnswer): string | null => headers.get('www-authenticate')
