// Builds a host from the valid part of an invalid config, to report the other problems in the same run.
import { faultsOf } from './config/check-definition.ts'
import { ConfigError } from './config/problems.ts'
import { buildHost, type HostInput } from './host.ts'

/** The host never listens. Throws a ConfigError with all problems, including those of the schema. */
export async function findOtherProblems({ toolsets, problems, ...input }: HostInput): Promise<never> {
  const sound = [...toolsets].map(([name, list]) => [name, list.filter(one => faultsOf(one).length === 0)] as const)
  try {
    const { host } = await buildHost({ ...input, toolsets: new Map(sound), problems, purpose: 'inspect' })
    await host.close({ grace: 0 })
  } catch (error) {
    // Any other error is probably a consequence of the parts that are left out.
    if (error instanceof ConfigError) throw error
  }
  return problems.assertNone() as never
}
