// Names that people take for other names: with letters of several scripts, or like one that is there.

/** Scripts whose letters look like each other's. */
const SCRIPTS = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Coptic', 'Lisu'].map(
  name => [name, new RegExp(`\\p{Script=${name}}`, 'u')] as const,
)

/** Letters and digits, each in front of those that look like it. */
const LIKE = [
  'aаαɑ',
  'AАΑ',
  'BВΒ',
  'cсϲⅽ',
  'CСϹ',
  'dԁⅾ',
  'eеҽ',
  'EЕΕ',
  'gɡց',
  'hһհ',
  'HНΗ',
  'iіιıӏ',
  'jјϳ',
  'KКΚ',
  'kκк',
  'lӏ1I|ІΙⅼ',
  'MМΜ',
  'nո',
  'NΝ',
  'oоοօ0ОΟO',
  'pрρ',
  'PРΡ',
  'qԛ',
  'sѕ',
  'SЅ',
  'TТΤ',
  'uυս',
  'vνѵ',
  'wԝѡ',
  'xхχ',
  'XХΧ',
  'yуγү',
  'YУΥ',
  'ZΖ',
  '-‐‑‒–—−',
]
const SAME = new Map(
  LIKE.flatMap(([first = '', ...others]) => others.map(other => [other, first === 'i' && other === 'ӏ' ? 'l' : first])),
)

/** What two names that look alike have in common. */
const lookOf = (name: string): string =>
  [...name.normalize('NFKD').replace(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, '')]
    .map(character => SAME.get(character) ?? character)
    .join('')
    .replaceAll('rn', 'm')

/** Says what is to be said of a name, held against these; empty: nothing. */
export function createNameMarks(others: Iterable<string>): (name: string) => string {
  const byLook = new Map<string, string[]>()
  for (const other of others) {
    const look = lookOf(other)
    byLook.set(look, [...(byLook.get(look) ?? []).slice(0, 1), other])
  }
  return name => {
    const scripts = SCRIPTS.filter(([, letters]) => letters.test(name)).map(([script]) => script)
    const twin = byLook.get(lookOf(name))?.find(other => other !== name)
    return [
      ...(scripts.length > 1 ? [`its name has letters of ${scripts.join(' and ')}`] : []),
      ...(twin === undefined ? [] : [`its name looks like ${JSON.stringify(twin)}`]),
    ].join(', and ')
  }
}
