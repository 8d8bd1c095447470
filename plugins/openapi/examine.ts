// `mcp-host doctor --config`: reads each document and connects to the servers of its operations.
import type { InternalExamination } from '../../core/internal.ts'
import { errorText, type PluginFinding } from '../../core/plugin.ts'
import { countsText } from '../families/texts/index.ts'
import { createLoad } from './document/load.ts'
import { DocumentError, withLocation } from './document/place.ts'
import type { FilledOptions, Source } from './options.ts'
import { readApi } from './read-api.ts'
import { sendOnce } from './request-send.ts'

/** Maximum servers of one document. */
const MAX_SERVERS = 5
const TIMEOUT = 10_000

type Open = () => ReturnType<InternalExamination['services']['openConnections']>

/** Sends HEAD without credentials. Any response shows that the server is reachable. */
async function examineApi(server: string, open: Open): Promise<PluginFinding> {
  const check = `API ${server}`
  try {
    const request = { method: 'HEAD', headers: ['user-agent', 'mcp-host'], timeout: TIMEOUT, maxResponse: 0 }
    const { status } = await sendOnce(open, new URL(server), request)
    const text = `responds with HTTP ${status} to a request without credentials`
    if (status < 500) return { check, level: 'ok', text }
    return { check, level: 'note', text }
  } catch (error) {
    const fix = 'start the API, correct `baseUrl`, or name the host in `allowHosts`'
    return { check, level: 'wrong', text: errorText(error), fix }
  }
}

async function examineDocument(name: string, source: Source, about: InternalExamination): Promise<PluginFinding[]> {
  const check = `document "${name}"`
  const { allowHosts = [] } = source
  const open: Open = () => about.services.openConnections({ allowHosts, connections: 1 })
  try {
    const settings = { directory: about.directory, load: createLoad(open, () => {}) }
    const { api, candidates, tools, faulty } = await readApi(source, settings)
    const omittedText = faulty.length === 0 ? '' : `, ${faulty.length} left out as invalid`
    const text = `OpenAPI ${api.version}, ${countsText({ tools: tools.length })} of ${countsText({ operations: candidates.length })}${omittedText}`
    const servers = [...new Set(tools.map(({ operation }) => operation.baseUrl))]
    const reached = servers.slice(0, MAX_SERVERS).map(server => examineApi(server, open))
    return [{ check, level: 'ok', text }, ...(await Promise.all(reached))]
  } catch (error) {
    const text = error instanceof DocumentError ? withLocation(error.place, error.fault) : errorText(error)
    return [{ check, level: 'wrong', text, fix: 'correct the document, or `document` and `allowHosts`' }]
  }
}

export async function examineDocuments(options: FilledOptions, about: InternalExamination): Promise<PluginFinding[]> {
  const all = Object.entries(options.documents).map(([name, source]) => examineDocument(name, source, about))
  return (await Promise.all(all)).flat()
}
