// Reads the document of a toolset: its tools, and the left-out operations with the reasons.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSize } from '../../core/plugin.ts'
import { candidatesOf, createApi } from './api.ts'
import { createDocuments, type Load, MAX_DOCUMENT, parseDocument } from './document/load.ts'
import { applyOverlay } from './document/overlay.ts'
import { DocumentError, type DocumentFile, located, MissingDocument } from './document/place.ts'
import { createNames } from './names.ts'
import type { Source } from './options.ts'
import { type ApiTool, readTool } from './read-tool.ts'
import { overrideKeyOf, reasonToSkip } from './select.ts'
import { createTrust, originsIn } from './servers.ts'

interface LeftOut {
  /** The operationId, or the method and path. */
  readonly id: string
  readonly reason: string
}

export type ApiReading = Awaited<ReturnType<typeof readApi>>

export interface ReadSettings {
  /** The base folder of relative paths. */
  readonly directory: string
  readonly load: Load
  /** The contents of the main document, if it is loaded. */
  readonly main?: Uint8Array
}

/** Reads a document. Throws a LoadError or a DocumentError if the document cannot be used at all. */
export async function readApi(source: Source, settings: ReadSettings) {
  const maxSchema = parseSize(source.maxSchema)
  const url = urlOf(source.document, settings)
  let file = parseDocument(url, source.document, settings.main ?? (await loadMain(source, settings)))
  let origins = isFile(file) ? undefined : new Set([url.origin])
  for (const name of [source.overlay ?? []].flat()) {
    const at = urlOf(name, settings)
    const overlay = parseDocument(at, name, await settings.load(at, name, MAX_DOCUMENT))
    if (!isFile(overlay)) origins ??= originsIn(file, source)
    file = await applyOverlay(overlay, file)
  }
  const documents = createDocuments(file, settings.load)
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
  const trusts = createTrust(origins, source)
  const api = await retrying(() => createApi(documents, trusts))
  const { candidates, faults } = await retrying(() => candidatesOf(api))
  const nameOf = createNames(candidates, source.prefix)
  const reading = {
    api,
    /** Origins that can receive credentials; undefined: all. */
    origins,
    candidates,
    tools: [] as ApiTool[],
    /** Operations left out by options. */
    skipped: [] as LeftOut[],
    /** Operations left out because of faults in the document, with file, line and pointer. */
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

export const loadMain = (source: Source, settings: ReadSettings): Promise<Uint8Array> =>
  settings.load(urlOf(source.document, settings), source.document, MAX_DOCUMENT)

const urlOf = (name: string, { directory }: ReadSettings): URL =>
  /^https?:\/\//.test(name) ? new URL(name) : pathToFileURL(resolve(directory, name))
