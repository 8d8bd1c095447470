// Why a module could not be bundled, in words. Apart from the bundler, which is loaded only where there is a module.
import { relative, resolve } from 'node:path'
import type { BuildFailure } from 'esbuild'
import { errorText } from '../../core/index.ts'
import type { BundleSettings } from './bundle-page.ts'
import { PageFault } from './page-fault.ts'

const MOST_TOLD = 5

const isFailure = (error: unknown): error is BuildFailure =>
  error instanceof Error && 'errors' in error && Array.isArray(error.errors)

/** What the bundler says of a module, by file and line. */
export function bundleFault(error: unknown, { file, directory }: BundleSettings): PageFault {
  const at = ['module']
  if (!isFailure(error)) return new PageFault(`esbuild cannot bundle it: ${errorText(error)}`, { at, cause: error })
  const places = error.errors.map(({ text, location }) => {
    if (!location) return { text }
    const file = resolve(directory, location.file)
    return { text: `${relative(directory, file)}:${location.line}:${location.column + 1}: ${text}`, file }
  })
  const lines = places.slice(0, MOST_TOLD).map(({ text }) => text)
  if (places.length > MOST_TOLD) lines.push(`and ${places.length - MOST_TOLD} more`)
  const files = [file, ...places.flatMap(place => place.file ?? [])]
  return new PageFault(`its module cannot be bundled:\n${lines.join('\n')}`, { at, files, cause: error })
}
