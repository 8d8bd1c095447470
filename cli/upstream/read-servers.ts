// Reads the settings of a config's upstream servers, and their lists, for commands.
import { dirname } from 'node:path'
import { optionsOf } from '../../core/create-host.ts'
import { systemClock } from '../../core/http/clock.ts'
import type { Logger } from '../../core/kernel/log.ts'
import { readServer } from '../../plugins/upstream/examine.ts'
import type { UpstreamOptions } from '../../plugins/upstream/options.ts'
import { resolveServer, type ServerSettings } from '../../plugins/upstream/settings.ts'
import type { CommandValues } from '../command.ts'
import { readConfig } from '../config.ts'
import type { CommandContext } from '../context.ts'
import type { SURFACE_OPTIONS } from '../lock.ts'
import { openLog } from '../log.ts'

export async function readServerSettings(
  options: CommandValues<typeof SURFACE_OPTIONS>,
  context: CommandContext,
  logger?: Logger,
) {
  const loaded = await readConfig(options, context)
  const directory = dirname(loaded.file)
  // `surfaceOfConfig` already logs the config warnings.
  const log = logger ?? Object.assign(openLog({ 'log-level': 'error' }, context), { directory })
  const instances = await optionsOf(loaded, log, 'upstream')
  const servers = instances.flatMap(({ options: own, at }) => {
    const upstream = own as UpstreamOptions
    return Object.keys(upstream.servers).map(name => resolveServer(name, upstream, { directory, at }))
  })
  return { file: loaded.file, servers: new Map(servers.map(settings => [settings.name, settings])) }
}

/** Connects to a server with the credentials of the host, and reads its lists. */
export async function readServerLists(settings: ServerSettings): ReturnType<typeof readServer> {
  const { createTokenClient } = await import('../../client/token-client.ts')
  const services = {
    createTokenClient: async (parts: Parameters<typeof createTokenClient>[0]) => createTokenClient(parts),
  }
  return readServer(settings, { services, clock: systemClock })
}
