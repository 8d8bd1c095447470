// Texts that would end the element which they are in.
export const words: string = '</script><!--<script>'
export const pattern = /[</script>]/u
