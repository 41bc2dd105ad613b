// Pictures of a paste, as data that the server takes.
const LARGEST = 8 * 1024 * 1024;

export async function picturesOf(data) {
  const files = [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/") && file.size <= LARGEST);
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
