// Pictures that are pasted, dropped or chosen, as data that the server takes.
const LARGEST = 8 * 1024 * 1024;

/** @param {{files?: FileList | null} | null} data of a paste, a drop or an input */
export async function picturesOf(data) {
  const files = [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));
  const large = files.find((file) => file.size > LARGEST);
  if (large) throw new Error(`${large.name} has more than ${LARGEST / 1024 / 1024} MB.`);
  return Promise.all(files.map(read));
}

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
