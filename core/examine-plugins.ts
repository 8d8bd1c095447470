// Asks the plugins of a config what they find out about what they depend on. Nothing is started for it. For create-host.ts.
import type { Examination, PluginFinding } from './config/examination.ts'
import type { HostParts } from './host.ts'
import { errorText } from './http/errors.ts'
import type { Logger } from './kernel/log.ts'
import type { PluginInstance } from './kernel/plugin-plan.ts'
import type { Plugin } from './plugin-host.ts'

interface Parts extends Pick<HostParts, 'config' | 'instances'> {
  readonly directory: string
  readonly log: Logger
}

/** Where clients reach the host; undefined where that is known only once it listens. */
function addressOf({ http: { publicUrl, host, port, tls } }: Parts['config']): string | undefined {
  if (publicUrl !== undefined) return publicUrl.replace(/\/$/, '')
  return port === 0 ? undefined : `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function examineOne(instance: PluginInstance, parts: Parts): Promise<PluginFinding[]> {
  const { name, options, general, routes } = instance
  const plugin: Plugin<object> = instance.plugin
  if (!plugin.examine) return []
  const whose = general ? name : `${name} of ${routes[0]?.path}`
  const address = addressOf(parts.config)
  const about: Examination = {
    at: instance.at,
    directory: parts.directory,
    log: parts.log.child({ plugin: name }),
    url: path => (address === undefined ? undefined : `${address}${path}`),
  }
  try {
    const findings = await plugin.examine(options, about)
    return findings.map(finding => ({ ...finding, check: `${whose}: ${finding.check}` }))
  } catch (error) {
    const fix = 'this is a mistake in the plugin: it should have told what it found'
    return [{ check: whose, level: 'wrong', text: `it could not be examined: ${errorText(error)}`, fix }]
  }
}

/** In the order of the config; each names the plugin that it is of. */
export async function examinePlugins(parts: Parts): Promise<PluginFinding[]> {
  const found = await Promise.all(parts.instances.map(instance => examineOne(instance, parts)))
  return found.flat()
}
