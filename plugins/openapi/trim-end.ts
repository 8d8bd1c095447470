// Removes repeated characters at the end of a text.

/** Takes linear time; `/0+$/` takes quadratic time for a text with long runs of the character. */
export function trimEndOf(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end--
  return text.slice(0, end)
}
