// Reads the document of a toolset: its tools, and the left-out operations with the reasons.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSize } from '../../core/plugin.ts'
import { type Api, type Candidate, candidatesOf, createApi } from './api.ts'
import { createDocuments, type LoadSettings, loadDocument } from './document/load.ts'
import { applyOverlay } from './document/overlay.ts'
import { DocumentError, type DocumentFile, located, MissingDocument } from './document/place.ts'
import { createNames } from './names.ts'
import type { Source } from './options.ts'
import { type ApiTool, readTool } from './read-tool.ts'
import { overrideKeyOf, reasonToSkip } from './select.ts'
import { originsIn } from './servers.ts'

interface LeftOut {
  /** The operationId, or the method and path. */
  readonly id: string
  readonly reason: string
}

export interface ApiReading {
  readonly api: Api
  readonly candidates: readonly Candidate[]
  readonly tools: readonly ApiTool[]
  /** Operations left out by options. */
  readonly skipped: readonly LeftOut[]
  /** Operations left out because of faults in the document, with file, line and pointer. */
  readonly faulty: readonly LeftOut[]
}

export interface ReadSettings extends LoadSettings {
  /** The base folder of relative paths. */
  readonly directory: string
}

/** Reads a document. Throws a LoadError or a DocumentError if the document cannot be used at all. */
export async function readApi(source: Source, settings: ReadSettings): Promise<ApiReading> {
  const maxSchema = parseSize(source.maxSchema)
  let { file } = await loadDocument(urlOf(source.document, settings), source.document, settings)
  let trusted = isFile(file) ? undefined : new Set([file.url.origin])
  for (const name of [source.overlay ?? []].flat()) {
    const overlay = await loadDocument(urlOf(name, settings), name, settings)
    if (!isFile(overlay.file)) trusted ??= originsIn(file, source)
    file = await applyOverlay(overlay.file, file)
  }
  const documents = createDocuments(file, settings)
  const retrying = async <Value>(read: () => Value): Promise<Value> => {
    for (;;) {
      try {
        return read()
      } catch (error) {
        if (!(error instanceof MissingDocument)) throw error
        await documents.add(error)
      }
    }
  }
  const trusts = createTrust(trusted, source)
  const api = await retrying(() => createApi(documents, trusts))
  const { candidates, faults } = await retrying(() => candidatesOf(api))
  const nameOf = createNames(candidates, source.prefix)
  const reading = {
    api,
    candidates,
    tools: [] as ApiTool[],
    skipped: [] as LeftOut[],
    faulty: faults.map(error => ({ id: '', reason: located(error.place, error.fault) })),
  }
  for (const candidate of candidates) {
    const reason = reasonToSkip(candidate, source)
    if (reason !== undefined) {
      reading.skipped.push({ id: candidate.id, reason })
      continue
    }
    const own = source.overrides?.[overrideKeyOf(candidate, source) ?? '']?.name
    const name = own === undefined ? nameOf(candidate) : `${source.prefix}${own}`
    try {
      reading.tools.push(await retrying(() => readTool(api, candidate, source, name, maxSchema)))
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error
      reading.faulty.push({ id: candidate.id, reason: located(error.place, error.fault) })
    }
  }
  return reading
}

const isFile = ({ url }: DocumentFile): boolean => url.protocol === 'file:'

/** Not a closure in `readApi`, which would keep the text of the document in memory. */
const createTrust =
  (origins: ReadonlySet<string> | undefined, { allowHosts = [] }: Source): Api['trusts'] =>
  ({ origin, host }) =>
    !origins || origins.has(origin) || allowHosts.includes(host)

const urlOf = (name: string, { directory }: ReadSettings): URL =>
  /^https?:\/\//.test(name) ? new URL(name) : pathToFileURL(resolve(directory, name))
